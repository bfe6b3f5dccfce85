/** Sends recorded requests to servers of ours, and says how its answers differ from the recorded ones. */
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Answer, differences } from './compare.ts'
import type { Exchange, RecordedRequest } from './recording.ts'
import { deadRegistry, recordedRegistry } from './registry.ts'
import type { Rules } from './shape.ts'
import type { Sites } from './sites.ts'
import { digests, isSubstitute, uploaded } from './uploads.ts'

export interface Result {
  readonly exchange: Exchange
  /** Empty when the answers are equal. */
  readonly differences: readonly string[]
  readonly ms: number
}

const limitMs = 30_000

/** One after the other: what a model answers may depend on what it was asked before. */
export async function replay(exchanges: readonly Exchange[], sites: Sites): Promise<readonly Result[]> {
  const agent = new Agent({ keepAlive: true })
  const results: Result[] = []
  for (const exchange of exchanges) {
    const startedAt = performance.now()
    const found = await compareWithOurs(exchange, sites, agent)
    results.push({ exchange, differences: found, ms: performance.now() - startedAt })
  }
  agent.destroy()
  return results
}

/** One difference a line: which exchange, and what differs. */
export const describeResult = ({ exchange: { id, request }, differences }: Result): string =>
  `${id} ${request.method} ${request.path} | ${differences.join(' | ')}`

async function compareWithOurs(exchange: Exchange, sites: Sites, agent: Agent): Promise<string[]> {
  const { status, headers, body } = exchange.response
  const recorded = { status, contentType: headers['content-type'], body }
  try {
    const request = translated(exchange, sites)
    return await differences(recorded, await send(request, sites.urlOf(exchange), agent), rulesFor(exchange))
  } catch (error) {
    return [`no answer: ${error instanceof Error ? error.message : String(error)}`]
  }
}

/** With our digests and our registry in place of the recorded ones. */
function translated({ id, request }: Exchange, { registry }: Sites): RecordedRequest {
  const { path, body } = request
  const toOurs = (text: string): string =>
    text
      .replaceAll(recordedRegistry, registry)
      .replace(
        /^(.*"(?:model|from)":")(nope(:cloud)?")/,
        wantsOut.test(id) ? `$1${deadRegistry}/library/$2` : '$&',
      )
      .replaceAll(/sha256:[0-9a-f]{64}/g, (digest) => digests.get(digest) ?? digest)
  return { ...request, path: toOurs(path), ...(body !== undefined && { body: toOurs(body) }) }
}

/** Exchanges whose models are looked for in a registry. */
const wantsOut = /^\d+-(unknown-push|pull-cloud|pull-neterr|create-from-missing)/

function rulesFor({ request }: Exchange): Rules {
  // What is installed and loaded is another matter than how it is told.
  const mayBeEmpty = ['models', 'data', 'recommendations']
  // There the recorded server imitates a part of other APIs, and we follow the originals.
  if (request.path.startsWith('/v1/'))
    return { exact: false, mayBeEmpty, optional: ['message', 'delta'].flatMap(optionalIn) }
  return {
    exact: true,
    mayBeEmpty,
    // As there.
    optional: ['thinking', 'message.thinking', 'message.tool_calls'],
    // Metadata under the names that the file uses.
    maps: isSubstitute(modelOf(request)) ? ['model_info'] : [],
  }
}

/** Whether a model thinks first, and calls a tool or answers in words, it decides itself, or its template where nobody says. */
const optionalIn = (piece: string): string[] => [
  `choices[].${piece}.reasoning`,
  `choices[].${piece}.tool_calls`,
]

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
  { method, path, headers, body, upload }: RecordedRequest,
  url: string,
  agent: Agent,
): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const signal = AbortSignal.timeout(limitMs)
  const payload = upload === undefined ? body && toBytes(body) : uploaded(upload)
  // Node says no length of what `DELETE` sends.
  const length = payload ? { 'content-length': payload.length } : {}
  const options = { hostname, port, method, path, headers: { ...length, ...headers }, agent, signal }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ ...options, setHost: headers.host === undefined })
      .once('response', resolve)
      .once('error', reject)
      .end(payload)
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
