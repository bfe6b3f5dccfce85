/** Reading a JSON body once, up to a limit, and never parsing what would block the event loop. */
import type { IncomingMessage } from 'node:http'
import { invalidRequest, LlmError } from '../errors.ts'

/** `JSON.parse` of ten megabytes of nested arrays blocks for seconds; flat, for milliseconds. */
const maxDepth = 128

export async function readJson(stream: IncomingMessage, limitBytes: number): Promise<unknown> {
  const encoding = stream.headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity')
    throw invalidRequest(`A request body in content-encoding ${encoding} is not supported.`)
  return parseJson(await readBytes(stream, limitBytes))
}

export function parseJson(bytes: Uint8Array): unknown {
  checkDepth(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new LlmError('invalid_request', 'The request body is not valid JSON.', {}, { cause })
  }
}

async function readBytes(stream: IncomingMessage, limitBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  const announced = Number(stream.headers['content-length'] ?? 0)
  if (announced > limitBytes) throw tooLarge(stream, limitBytes)
  let length = 0
  // Leaving the default iterator early would destroy the socket, and with it the answer.
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    length += chunk.length
    if (length > limitBytes) break
    chunks.push(chunk)
  }
  // Behind the loop: the iterator holds the stream for as long as it is open.
  if (length > limitBytes) throw tooLarge(stream, limitBytes)
  return Buffer.concat(chunks)
}

/** The rest is read and dropped, so that the client, still sending, gets to see the answer. */
function tooLarge(stream: IncomingMessage, limitBytes: number): LlmError {
  stream.resume()
  return new LlmError('too_large', `The request body is larger than ${limitBytes} bytes.`)
}

function checkDepth(bytes: Buffer): void {
  let depth = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === quote) i = endOfString(bytes, i)
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > maxDepth)
        throw invalidRequest(`The request body is nested deeper than ${maxDepth} levels.`)
    } else if (byte === closeBrace || byte === closeBracket) depth--
  }
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket] = [
  0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d,
]

/** Jumps from quote to quote: an inlined image is one long string. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(0x22, start + 1); end !== -1; end = bytes.indexOf(0x22, end + 1)) {
    let escapes = 0
    while (bytes[end - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return bytes.length
}
