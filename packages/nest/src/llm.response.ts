/** Answers requests of a Nest handler, on Express or Fastify. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { type HttpResponse, writeNodeResponse } from '@modelmount/core/http'
import { StreamableFile } from '@nestjs/common'

/** The fields of a Fastify reply that this package uses. */
interface NestFastifyReply {
  readonly raw: ServerResponse
  getHeader(name: string): number | string | string[] | undefined
  code(status: number): NestFastifyReply
  headers(headers: Readonly<Record<string, unknown>>): NestFastifyReply
  send(body: unknown): NestFastifyReply
}

/** The response of Express, which is Node's own, or the reply of Fastify. */
export type LlmResponse = ServerResponse | NestFastifyReply

export const isReply = (res: LlmResponse): res is NestFastifyReply => 'raw' in res

/** Returns Node's response of a request. */
export const rawResponse = (res: LlmResponse): ServerResponse => (isReply(res) ? res.raw : res)

/** Sends a response from outside of a handler, such as an exception filter. */
export async function sendResponse(res: LlmResponse, response: HttpResponse): Promise<void> {
  if (!isReply(res)) return await writeNodeResponse(response, res)
  const { status, headers, body } = response
  res
    .code(status)
    .headers(headers)
    .send(body === null ? undefined : typeof body === 'string' ? body : Readable.from(body))
}

/**
 * Converts a response to the return value of a Nest handler. Interceptors see this value before Nest sends
 * it.
 */
export function toResult(
  { status, headers, body }: HttpResponse,
  res: LlmResponse,
  signal: AbortSignal,
): string | null | undefined | StreamableFile {
  if (body === null || typeof body === 'string') {
    setHead(res, status, headers)
    // Fastify would send `null` as JSON.
    return body === null && isReply(res) ? undefined : body
  }
  const stream = toStream(body, res)
  // Once the response is over, the stream must end. An interceptor may have sent another body instead.
  signal.addEventListener('abort', () => stream.destroy())
  if (!isReply(res)) {
    setHead(res, status, headers)
    return new StreamableFile(stream)
  }
  // Fastify would reject an object that an interceptor returns instead, if the reply had the type of our stream.
  const { 'content-type': type = '', ...others } = headers
  setHead(res, status, others)
  return new StreamableFile(stream, { type })
}

function setHead(res: LlmResponse, status: number, headers: HttpResponse['headers']): void {
  if (isReply(res)) return void res.code(status).headers(headers)
  res.statusCode = status
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
}

/** Creates a stream that sends the headers once it is read. The first frame, with which Nest would send them, may take long. */
function toStream(body: Exclude<HttpResponse['body'], string | null>, res: LlmResponse): Readable {
  if (isReply(res)) {
    res.raw.once('pipe', () => res.raw.flushHeaders())
    // Nest would put a transform before a stream in object mode. Like there, one frame is read ahead.
    return Readable.from(body, { objectMode: false, highWaterMark: 1 })
  }
  const stream = Readable.from(body)
  stream.once('resume', () => res.flushHeaders())
  return stream
}
