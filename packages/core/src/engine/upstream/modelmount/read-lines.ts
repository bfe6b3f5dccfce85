/** Reads the lines of a response. */
import { LlmError } from '../../../errors.ts'
import { tryParseJson } from '../../../util/try-parse-json.ts'
import type { EngineCall } from '../../engine.ts'
import { parseLine, type WireLine } from '../../wire/app-api.ts'
import { fromWireError, type WireError } from '../../wire/wire-error.ts'
import type { UpstreamClient, UpstreamRequest } from '../upstream-client.ts'
import { invalidResponse, keyRejected } from '../upstream-errors.ts'

type AnswerLine = Exclude<WireLine, { readonly error: unknown }>

/** Throws the error of the other app. Ends without an error when the signal aborts. */
export async function* readLines(
  client: UpstreamClient,
  request: UpstreamRequest,
): AsyncGenerator<readonly AnswerLine[]> {
  for await (const texts of client.readLines(request)) {
    const lines = texts.map(toLine)
    const at = lines.findIndex((line) => 'error' in line)
    if (at < 0) yield lines as readonly AnswerLine[]
    else {
      yield lines.slice(0, at) as readonly AnswerLine[]
      throw toOwnError((lines[at] as Extract<WireLine, { readonly error: unknown }>).error)
    }
  }
}

/** The other app authenticates the key of this app, which may be revoked during the call. Callers do not know that key. */
function toOwnError(reported: WireError): LlmError {
  const error = fromWireError(reported)
  if (!LlmError.is(error)) return invalidResponse('its error has an unknown code')
  return error.code === 'authentication' ? keyRejected(error) : error
}

export interface WireResult {
  /** The items of all lists, or the pieces of a text. */
  readonly items: readonly unknown[]
  readonly result: Extract<WireLine, { readonly result: unknown }>['result']
}

/** Rejects with the reason of the signal when it aborts. */
export async function readResult(
  client: UpstreamClient,
  request: UpstreamRequest,
  { onInputTokens, onProgress }: EngineCall,
): Promise<WireResult> {
  const items: unknown[] = []
  for await (const lines of readLines(client, request))
    for (const line of lines) {
      if ('result' in line) return { items, result: line.result }
      if ('inputTokens' in line) onInputTokens?.(line.inputTokens)
      else if ('event' in line) {
        if (line.event.type === 'progress') onProgress?.(line.event)
      } else if (typeof line.part === 'string') items.push(line.part)
      else for (const item of line.part) items.push(item)
    }
  request.signal.throwIfAborted()
  throw invalidResponse('it ended before its result')
}

function toLine(text: string): WireLine {
  const line = parseLine(tryParseJson(text))
  if (!line) throw invalidResponse('a line is not as expected')
  return line
}
