/** Reads a request body: as JSON within limits that keep the event loop free, or as raw bytes. */
import type { IncomingMessage } from 'node:http'
import { invalidRequest, LlmError } from '../errors.ts'

/** `JSON.parse` of ten megabytes of nested arrays or empty objects blocks for seconds; of text, for milliseconds. */
const maxDepth = 128
/** Limit of objects, arrays, fields and items together. */
const maxParts = 1_000_000

export interface BodySource {
  readonly chunks: AsyncIterable<Uint8Array>
  readonly contentLength: string | null | undefined
  readonly contentEncoding: string | null | undefined
}

export async function readNodeJson(
  stream: IncomingMessage,
  limitBytes: number,
  defaultBody?: object,
): Promise<unknown> {
  try {
    return await readJson(sourceOf(stream), limitBytes, defaultBody)
  } finally {
    drain(stream)
  }
}

/** Reads only what the consumer pulls. */
export async function* readNodeBytes(stream: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* readBytes(sourceOf(stream))
  } finally {
    drain(stream)
  }
}

const sourceOf = (stream: IncomingMessage): BodySource => ({
  // Leaving the default iterator early would destroy the socket, and the response with it.
  chunks: stream.iterator({ destroyOnReturn: false }),
  contentLength: stream.headers['content-length'],
  contentEncoding: stream.headers['content-encoding'],
})

/** Discards the rest, so that a client that is still sending can read the response. */
const drain = (stream: IncomingMessage): void => void stream.resume()

export async function readJson(
  source: BodySource,
  limitBytes: number,
  defaultBody?: object,
): Promise<unknown> {
  if (Number(source.contentLength ?? 0) > limitBytes) throw tooLarge(limitBytes)
  return parseJson(await concatenate(readBytes(source), limitBytes), defaultBody)
}

export async function* readBytes({ chunks, contentEncoding }: BodySource): AsyncGenerator<Uint8Array> {
  const encoding = contentEncoding ?? 'identity'
  if (encoding.toLowerCase() !== 'identity')
    throw invalidRequest(`A request body in content-encoding ${encoding} is not supported.`)
  try {
    yield* chunks
  } catch (cause) {
    throw new LlmError('invalid_request', 'The request body ended before it was complete.', {}, { cause })
  }
}

/** The bytes that a body parser in front has kept. */
export async function* readParsedBytes(parsed: unknown): AsyncGenerator<Uint8Array> {
  if (!(parsed instanceof Uint8Array))
    throw createBodyParserError(
      'The request body was read in front of this route, and its bytes were not handed on.',
    )
  yield parsed
}

/** Accepts the result of an earlier body parser that has read the stream. */
export function readParsedBody(parsed: unknown, contentType = '', defaultBody?: object): unknown {
  if (typeof parsed === 'string') return parseJson(Buffer.from(parsed), defaultBody)
  if (parsed instanceof Uint8Array) return parseJson(parsed, defaultBody)
  if (parsed === undefined)
    throw createBodyParserError('The request body was read in front of this route, and not handed on.')
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType) && isForm(parsed))
    throw createBodyParserError(
      'The request body was read in front of this route as a form, because that is its content-type. Send application/json.',
    )
  return parsed
}

// The content-type alone is no proof: `express.json({ type: '*/*' })` parses such bodies as JSON.
function isForm(parsed: unknown): boolean {
  const fields = Object.entries(parsed ?? {})
  // `curl -d` labels JSON as a form; its text then becomes the name of a field.
  if (fields.some(([name]) => name.trimStart().startsWith('{'))) return true
  return fields.length > 0 && fields.every(([, value]) => typeof value === 'string')
}

const createBodyParserError = (message: string): LlmError =>
  invalidRequest(`${message} In the app, mount the routes before the body parser.`, { setup: true })

/** @param defaultBody result for an empty body */
export function parseJson(bytes: Uint8Array, defaultBody?: object): unknown {
  if (bytes.length === 0 && defaultBody) return defaultBody
  checkComplexity(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    const isEmpty = bytes.every((byte) => whitespace.includes(byte))
    throw new LlmError(
      'invalid_request',
      'The request body is not valid JSON.',
      isEmpty ? { emptyBody: true } : {},
      { cause },
    )
  }
}

/** White space in JSON. */
const whitespace = [0x20, 0x09, 0x0a, 0x0d]

async function concatenate(source: AsyncIterable<Uint8Array>, limitBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of source) {
    length += chunk.length
    if (length > limitBytes) throw tooLarge(limitBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = (limitBytes: number): LlmError =>
  new LlmError('too_large', `The request body is larger than ${limitBytes} bytes.`)

/** Scans the bytes before they are parsed. */
function checkComplexity(bytes: Buffer): void {
  let depth = 0
  let parts = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === quote) i = endOfString(bytes, i)
    else if (byte === openBrace || byte === openBracket) {
      depth++
      parts++
    } else if (byte === closeBrace || byte === closeBracket) depth--
    else if (byte === colon || byte === comma) parts++
    if (depth > maxDepth) throw invalidRequest(`The request body is nested deeper than ${maxDepth} levels.`)
    if (parts > maxParts)
      throw invalidRequest(`The request body has more than ${maxParts} objects, arrays, fields and items.`)
  }
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket, colon, comma] = [
  0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d, 0x3a, 0x2c,
]

/** Jumps from quote to quote, since an inlined image is one long string. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(quote, start + 1); end !== -1; end = bytes.indexOf(quote, end + 1)) {
    let escapes = 0
    while (bytes[end - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return bytes.length
}
