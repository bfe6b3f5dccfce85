/** A server that answers as the test says, as an upstream of an engine. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Listening, listen } from './listen.ts'

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

type Answer = (response: ServerResponse, request: ReceivedRequest) => unknown

export class UpstreamServer {
  readonly requests: ReceivedRequest[] = []
  /** Answers each request but that for the list of models. */
  answer: Answer = (response) => response.end()
  models: Answer = (response) => sendJson(response, { data: [{ id: 'small', owned_by: 'test' }] })
  #listening: Listening | undefined

  static async start(): Promise<UpstreamServer> {
    const upstream = new UpstreamServer()
    await upstream.restart()
    return upstream
  }

  /** Listens again after `close()`, at the same URL. */
  async restart(): Promise<void> {
    const port = Number(this.#listening && new URL(this.url).port)
    this.#listening = await listen(
      (request, response) => void this.#receive(request, response),
      {},
      port || 0,
    )
  }

  get url(): string {
    return this.#listening?.url ?? ''
  }

  /** Also ends the running answers. */
  async close(): Promise<void> {
    await this.#listening?.close()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const { method = '', url = '', headers } = request
    const received = { method, path: url, headers, body: text && JSON.parse(text) }
    this.requests.push(received)
    const answer = url.endsWith('/v1/models') || url.endsWith('/api/tags') ? this.models : this.answer
    await answer(response, received)
  }
}

export const sendJson = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

/** Sends server-sent events. A text is sent as it is. */
export const sendEvents = (
  response: ServerResponse,
  ...events: readonly (object | string)[]
): ServerResponse => {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events)
    response.write(typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`)
  return response
}

/** An event of a chat of OpenAI's API. */
export const chatDelta = (delta: object, finishReason: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finishReason }],
})
