/** Streams the lines of a response. */
import type { RouteClient } from '../../calls/client.ts'
import type { WireLine } from '../../engine/wire/app-api.ts'
import { LlmError } from '../../errors.ts'
import { jsonLine, ndjson } from '../../http/streams.ts'
import { readAhead } from '../../util/read-ahead.ts'
import type { Handler } from '../dialect.ts'

/** The other app ignores empty lines. */
const heartbeat = '\n'

/**
 * Creates a handler whose response begins when the body is read. Later failures are lines of the response, so that the other
 * app gets them whole.
 *
 * @param work yields the lines for the body of the request
 */
export const lineRoute =
  (work: (body: unknown, llm: RouteClient, signal: AbortSignal) => AsyncIterable<WireLine>): Handler =>
  async ({ request, llm, onError }) => {
    const body = await request.json()
    const { signal } = request
    return ndjson(toText(work(body, llm, signal), signal), { onError, heartbeat })
  }

async function* toText(lines: AsyncIterable<WireLine>, signal: AbortSignal): AsyncGenerator<string> {
  try {
    for await (const line of lines) yield jsonLine(line)
  } catch (cause) {
    // The other app has left.
    if (!signal.aborted || LlmError.is(cause)) throw cause
  }
}

/**
 * Creates a handler for a call with one result.
 *
 * @param run returns the lines of the result, and may push lines before
 */
export const resultRoute = (
  run: (
    body: unknown,
    llm: RouteClient,
    context: { readonly signal: AbortSignal; readonly push: (line: WireLine) => void },
  ) => Promise<Iterable<WireLine>>,
): Handler =>
  lineRoute((body, llm, signal) =>
    readAhead<WireLine>(signal, async (push, signal) => {
      for (const line of await run(body, llm, { signal, push })) push(line)
    }),
  )

/** The pieces of a text or list, and what belongs to it. */
export function* partLines(
  whole: string | readonly unknown[],
  size: number,
  result: Extract<WireLine, { readonly result: unknown }>['result'] = null,
): Generator<WireLine> {
  for (let at = 0; at < whole.length; at += size) yield { part: whole.slice(at, at + size) }
  yield { result }
}
