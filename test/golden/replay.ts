/** Sends recorded requests to a server of ours, and says how its answers differ from the recorded ones. */
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Answer, differences } from './compare.ts'
import type { Exchange, RecordedRequest } from './recording.ts'
import type { Rules } from './shape.ts'
import { isSubstitute } from './stand-ins.ts'

export interface Result {
  readonly exchange: Exchange
  /** Empty when the answers are equal. */
  readonly differences: readonly string[]
  readonly ms: number
}

const limitMs = 30_000

/** One after the other: what a model answers may depend on what it was asked before. */
export async function replay(exchanges: readonly Exchange[], url: string): Promise<readonly Result[]> {
  const agent = new Agent({ keepAlive: true })
  const results: Result[] = []
  for (const exchange of exchanges) {
    const startedAt = performance.now()
    const found = await compareWithOurs(exchange, url, agent)
    results.push({ exchange, differences: found, ms: performance.now() - startedAt })
  }
  agent.destroy()
  return results
}

/** One difference a line: which exchange, and what differs. */
export const describeResult = ({ exchange: { id, request }, differences }: Result): string =>
  `${id} ${request.method} ${request.path} | ${differences.join(' | ')}`

async function compareWithOurs(exchange: Exchange, url: string, agent: Agent): Promise<string[]> {
  const { status, headers, body } = exchange.response
  const recorded = { status, contentType: headers['content-type'], body }
  try {
    return await differences(recorded, await send(exchange.request, url, agent), rulesFor(exchange))
  } catch (error) {
    return [`no answer: ${error instanceof Error ? error.message : String(error)}`]
  }
}

function rulesFor({ request }: Exchange): Rules {
  // What is installed and loaded is another matter than how it is told.
  const mayBeEmpty = ['models', 'data']
  // There the recorded server imitates a part of other APIs, and we follow the originals.
  if (request.path.startsWith('/v1/')) return { exact: false, mayBeEmpty }
  return {
    exact: true,
    mayBeEmpty,
    // Whether a model thinks first, and calls a tool or answers in words, it decides itself.
    optional: ['thinking', 'message.thinking', 'message.tool_calls'],
    // Metadata under the names that the file uses.
    maps: isSubstitute(modelOf(request)) ? ['model_info'] : [],
  }
}

/** Empty where the request has none. */
function modelOf({ body = '' }: RecordedRequest): string {
  try {
    return String(JSON.parse(body)?.model ?? '')
  } catch {
    return ''
  }
}

/** Not by `fetch`, which sets `Host` itself, and corrects paths. */
async function send(
  { method, path, headers, body }: RecordedRequest,
  url: string,
  agent: Agent,
): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const signal = AbortSignal.timeout(limitMs)
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ hostname, port, method, path, headers, agent, signal, setHost: headers.host === undefined })
      .once('response', resolve)
      .once('error', reject)
      .end(body === undefined ? undefined : toBytes(body))
  })
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers['content-type'],
    body: await text(response),
  }
}

const toBytes = (body: string): Buffer =>
  Buffer.concat(
    body
      .split(/(\\x[0-9a-f]{2})/)
      .map((part) => (part.startsWith('\\x') ? Buffer.from(part.slice(2), 'hex') : Buffer.from(part))),
  )
