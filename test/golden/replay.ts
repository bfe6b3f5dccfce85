/** Sends recorded requests to our servers, and compares the responses. */
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
  /** Empty for equal responses. */
  readonly differences: readonly string[]
  readonly ms: number
}

const limitMs = 30_000

/** Sends the requests one after the other, because responses can depend on earlier requests. */
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

/** One line per difference, with its exchange. */
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

/** Replaces recorded digests and registry by ours. */
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

/** Exchanges that contact a registry. */
const wantsOut = /^\d+-(unknown-push|pull-cloud|pull-neterr|create-from-missing)/

function rulesFor({ request }: Exchange): Rules {
  // Which models are installed and loaded may differ.
  const mayBeEmpty = ['models', 'data', 'recommendations']
  // The recorded server imitates parts of these APIs. We follow the original APIs.
  if (request.path.startsWith('/v1/'))
    return { exact: false, mayBeEmpty, optional: ['message', 'delta'].flatMap(optionalIn) }
  return {
    exact: true,
    mayBeEmpty,
    // The model or its template decides whether these keys appear.
    optional: ['thinking', 'message.thinking', 'message.tool_calls'],
    // The keys of this object come from the metadata of the file.
    maps: isSubstitute(modelOf(request)) ? ['model_info'] : [],
  }
}

/** The model or its template decides whether to think, call a tool or answer in text. */
const optionalIn = (piece: string): string[] => [
  `choices[].${piece}.reasoning`,
  `choices[].${piece}.tool_calls`,
]

/** Empty for requests without a body. */
function modelOf({ body = '' }: RecordedRequest): string {
  try {
    return String(JSON.parse(body)?.model ?? '')
  } catch {
    return ''
  }
}

/** Avoids `fetch`, which sets `Host` itself and normalises paths. */
async function send(
  { method, path, headers, body, upload }: RecordedRequest,
  url: string,
  agent: Agent,
): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const signal = AbortSignal.timeout(limitMs)
  const payload = upload === undefined ? body && toBytes(body) : uploaded(upload)
  // Node sets no content length for `DELETE`.
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
