/** A server that answers as a test says, in place of an upstream server. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { json as readJson } from 'node:stream/consumers'
import { type ApiName, upstreamEngine } from '@modelmount/core/upstream'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../packages/core/src/engine/engine.ts'
import { listen } from './listen.ts'

export interface StubRequest {
  /** With the query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Undefined for a `GET` request. */
  readonly body: unknown
}

export interface UpstreamStub {
  readonly engine: Engine
  readonly requests: readonly StubRequest[]
}

/** Closes server and engine at the end of the test. */
export async function stubUpstream(
  api: ApiName,
  respond: (response: ServerResponse, request: StubRequest) => void,
): Promise<UpstreamStub> {
  const requests: StubRequest[] = []
  const server = await listen(async (incoming, response) => {
    const { url: path = '', headers, method } = incoming
    const request = { path, headers, body: method === 'POST' ? await readJson(incoming) : undefined }
    requests.push(request)
    respond(response, request)
  })
  const engine = upstreamEngine({ url: server.url, api, apiKey: 'key-1' })
  onTestFinished(async () => {
    await engine.close()
    await server.close()
  })
  return { engine, requests }
}

/** Sends pieces of a body one after the other, each as a chunk of its own. */
export function sendChunks(response: ServerResponse, chunks: readonly (string | Uint8Array)[]): void {
  const [first, ...rest] = chunks
  if (first === undefined) response.end()
  else response.write(first, () => setImmediate(() => sendChunks(response, rest)))
}
