/** Reads request bodies as JSON or as raw bytes. Limits on JSON keep the event loop responsive. */
import type { IncomingMessage } from 'node:http'
import { invalidRequest, LlmError } from '../errors.ts'
import type { BodyAllowance } from './message.ts'
import { withStallTimeout } from './stall-timeout.ts'

/**
 * Levels of nesting. `JSON.parse` blocks for seconds on 10 MB of nested arrays, but only for milliseconds on
 * 10 MB of text.
 */
const maxDepth = 128
/**
 * Number of objects, arrays, fields and items together. `JSON.parse` blocks for seconds on 10 MB of empty
 * objects.
 */
const maxParts = 1_000_000

/**
 * Memory of a body that is read chunk by chunk, in bytes: at most 64 KiB in the stream, and a chunk of at most
 * 64 KiB at its consumer.
 */
const streamBytes = 128 * 1024

/**
 * Bytes that must arrive within each stall timeout, until the body is complete. A JSON body reserves memory
 * for its whole length, so a client that sends one byte after the other must not keep it. For the buffers of a
 * stream, any progress is enough.
 */
const minProgress = { json: 1_024, stream: 1 }

export interface BodySource {
  readonly chunks: AsyncIterable<Uint8Array>
  /** Whether all bytes have arrived. Such a body cannot stall. @default false */
  readonly isComplete?: boolean
  readonly contentLength: string | null | undefined
  readonly contentEncoding: string | null | undefined
}

export async function readNodeJson(
  stream: IncomingMessage,
  limitBytes: number,
  defaultBody?: object,
  allowance?: BodyAllowance,
): Promise<unknown> {
  try {
    return await readJson(sourceOf(stream), limitBytes, defaultBody, allowance)
  } finally {
    drain(stream)
  }
}

/** Reads the body chunk by chunk, as the consumer pulls them. */
export async function* readNodeBytes(
  stream: IncomingMessage,
  allowance?: BodyAllowance,
): AsyncGenerator<Uint8Array> {
  try {
    yield* readBytes(sourceOf(stream), allowance)
  } finally {
    drain(stream)
  }
}

const sourceOf = (stream: IncomingMessage): BodySource => ({
  // Leaving the default iterator early would destroy the socket, and the response with it.
  chunks: stream.iterator({ destroyOnReturn: false }),
  // The parser sets `complete` some steps after it has delivered the last byte.
  isComplete: stream.complete || stream.readableLength === Number(stream.headers['content-length']),
  contentLength: stream.headers['content-length'],
  contentEncoding: stream.headers['content-encoding'],
})

/** Discards the unread rest of the body. A client that is still sending can then read the response. */
const drain = (stream: IncomingMessage): void => void stream.resume()

export async function readJson(
  source: BodySource,
  bodyLimit: number,
  defaultBody?: object,
  allowance?: BodyAllowance,
): Promise<unknown> {
  const limitBytes = Math.min(bodyLimit, allowance?.maxBytes ?? bodyLimit)
  const length = parseLength(source.contentLength)
  if (length > limitBytes) throw tooLarge(limitBytes)
  allowance?.reserve(length)
  return parseJson(await concatenate(source, length, limitBytes, allowance), defaultBody)
}

/** Reads a body of any size. Reserves memory for its buffers only. */
export async function* readBytes(source: BodySource, allowance?: BodyAllowance): AsyncGenerator<Uint8Array> {
  allowance?.reserve(streamBytes)
  yield* readChunks(source, allowance, minProgress.stream)
}

/** Returns 0 without a valid `content-length`, as in a chunked body. */
const parseLength = (header: string | null | undefined): number =>
  /^\d+$/.test(header ?? '') ? Number(header) : 0

async function* readChunks(
  { chunks, isComplete, contentEncoding }: BodySource,
  allowance: BodyAllowance | undefined,
  minBytes: number,
): AsyncGenerator<Uint8Array> {
  const encoding = contentEncoding ?? 'identity'
  if (encoding.toLowerCase() !== 'identity')
    throw invalidRequest(`A request body in content-encoding ${encoding} is not supported.`)
  try {
    yield* isComplete || !allowance ? chunks : withStallTimeout(chunks, allowance.stallTimeoutMs, minBytes)
  } catch (cause) {
    if (LlmError.is(cause)) throw cause
    throw new LlmError('invalid_request', 'The request body ended before it was complete.', {}, { cause })
  }
}

/**
 * Yields the raw body that an earlier body parser stored. Throws an `LlmError` `invalid_request` if the body
 * is not bytes.
 */
export async function* readParsedBytes(parsed: unknown): AsyncGenerator<Uint8Array> {
  if (!(parsed instanceof Uint8Array))
    throw createBodyParserError(
      'An earlier body parser consumed the request body and did not keep its bytes.',
    )
  yield parsed
}

/** Yields a JSON body that an earlier body parser has parsed. Throws like `readParsedBody`. */
export async function* readParsedJsonBytes(
  parsed: unknown,
  contentType?: string,
): AsyncGenerator<Uint8Array> {
  if (parsed instanceof Uint8Array) yield parsed
  else if (typeof parsed === 'string') yield Buffer.from(parsed)
  else yield Buffer.from(JSON.stringify(readParsedBody(parsed, contentType)))
}

/** Converts the result of an earlier body parser, which has consumed the stream, to a JSON value. */
export function readParsedBody(parsed: unknown, contentType = '', defaultBody?: object): unknown {
  if (typeof parsed === 'string') return parseJson(Buffer.from(parsed), defaultBody)
  if (parsed instanceof Uint8Array) return parseJson(parsed, defaultBody)
  if (parsed === undefined)
    throw createBodyParserError('Earlier middleware consumed the request body and did not keep it.')
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType) && isForm(parsed))
    throw createBodyParserError(
      'An earlier body parser read the request body as a form, because of its content-type. Send application/json.',
    )
  return parsed
}

// The content-type does not prove that a form was parsed: `express.json({ type: '*/*' })` ignores it.
function isForm(parsed: unknown): boolean {
  const fields = Object.entries(parsed ?? {})
  // `curl -d` sends JSON with the content-type of a form. A form parser then makes the JSON text a field
  // name.
  if (fields.some(([name]) => name.trimStart().startsWith('{'))) return true
  return fields.length > 0 && fields.every(([, value]) => typeof value === 'string')
}

const createBodyParserError = (message: string): LlmError =>
  invalidRequest(
    `${message} In the app, mount the routes before the body parser. In Nest, set bodyParser to false.`,
    { setup: true },
  )

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

/** @param reserved bytes that the allowance has already reserved. Further bytes are reserved as they arrive. */
async function concatenate(
  source: BodySource,
  reserved: number,
  limitBytes: number,
  allowance: BodyAllowance | undefined,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of readChunks(source, allowance, minProgress.json)) {
    const excess = length + chunk.length - Math.max(length, reserved)
    length += chunk.length
    if (length > limitBytes) throw tooLarge(limitBytes)
    if (excess > 0) allowance?.reserve(excess)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = (limitBytes: number): LlmError =>
  new LlmError('too_large', `The request body is larger than ${limitBytes} bytes.`)

/** Throws an `LlmError` `invalid_request` for JSON with too many levels or parts, before parsing blocks. */
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

/** Finds the closing quote of a string. `indexOf` is fast for inlined images, which are long strings. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(quote, start + 1); end !== -1; end = bytes.indexOf(quote, end + 1)) {
    let escapes = 0
    while (bytes[end - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return bytes.length
}
