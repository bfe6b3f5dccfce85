/** Reads the requests of a batch from a file, line by line. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { humanBytes } from '../format/human.ts'

/** The API whose format the lines have. */
export type LineFormat = 'anthropic' | 'openai'

export interface RequestLine {
  /** Empty for a blank line. */
  readonly text: string
  /** Size of the file up to this line, in bytes. */
  readonly bytes: number
}

export interface RequestLines {
  readonly format: LineFormat
  /** Path of the route that all requests are for. Anthropic's format has none. */
  readonly endpoint: string
  /** Name of the file, without its folder. */
  readonly name: string
  /** Size of the file, unless it is a pipe. */
  readonly totalBytes: number | undefined
  /** Can be read once. Throws an error with file and line for an invalid line. */
  readonly lines: AsyncGenerator<RequestLine>
}

/**
 * Opens a file, and finds the format of its first request. Rejects if this request is invalid, or if there is none.
 *
 * @param file `-` for stdin
 */
export async function openRequests(
  file: string,
  stdin: AsyncIterable<Uint8Array> = process.stdin,
): Promise<RequestLines> {
  const isPipe = file === '-'
  const name = isPipe ? 'stdin' : file
  const size = isPipe ? undefined : await sizeOf(file)
  const check = new RequestCheck()
  const lines = checkedLines(isPipe ? stdin : createReadStream(file), name, check)
  const blank: RequestLine[] = []
  for (;;) {
    const { value: line, done } = await lines.next()
    if (done) throw new Error(`${name} has no requests.`)
    blank.push(line)
    if (line.text !== '') break
  }
  return {
    format: check.format,
    endpoint: check.endpoint,
    name: basename(name),
    totalBytes: size,
    lines: (async function* () {
      yield* blank
      yield* lines
    })(),
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    const found = await stat(file)
    return found.isFile() ? found.size : undefined
  } catch (cause) {
    throw unreadable(file, cause as NodeJS.ErrnoException)
  }
}

function unreadable(file: string, cause: NodeJS.ErrnoException): Error {
  const reason = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read (${cause.code})`
  return new Error(`the file ${file} ${reason}`, { cause })
}

async function* checkedLines(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  check: RequestCheck,
): AsyncGenerator<RequestLine> {
  let number = 0
  let bytes = 0
  for await (const line of splitLines(chunks, name)) {
    number++
    bytes += line.length + 1
    try {
      const text = decode(line).trim()
      if (text !== '') check.add(text, number)
      yield { text, bytes }
    } catch (cause) {
      throw cause instanceof InvalidLine ? new Error(`${name}:${number}: ${cause.message}`) : cause
    }
  }
}

/** Yields lines without their line breaks. */
async function* splitLines(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  let number = 1
  let pieces: Uint8Array[] = []
  let length = 0
  const bytesOfFile = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* chunks
    } catch (cause) {
      throw unreadable(name, cause as NodeJS.ErrnoException)
    }
  }
  for await (const chunk of bytesOfFile()) {
    for (let from = 0; from < chunk.length; ) {
      const at = chunk.indexOf(lineFeed, from)
      const end = at === -1 ? chunk.length : at
      pieces.push(chunk.subarray(from, end))
      length += end - from
      if (length > maxLineBytes)
        throw new Error(`${name}:${number}: the line is longer than ${humanBytes(maxLineBytes)}.`)
      from = end + 1
      if (at === -1) break
      const line = Buffer.concat(pieces)
      pieces = []
      length = 0
      number++
      yield line
    }
  }
  if (length > 0) yield Buffer.concat(pieces)
}

const lineFeed = 0x0a
/** Bounds the memory for a file that is no list of requests. Servers accept smaller ones. */
const maxLineBytes = 64_000_000

function decode(line: Uint8Array): string {
  try {
    // Also removes a byte order mark at the beginning of the file.
    return new TextDecoder('utf-8', { fatal: true }).decode(line)
  } catch {
    throw new InvalidLine('the line is not valid UTF-8.')
  }
}

class InvalidLine extends Error {}

/** Checks what a server could not report with the number of the line. The parameters of requests are left to the server. */
class RequestCheck {
  format: LineFormat = 'anthropic'
  endpoint = '/v1/messages'
  #firstLine = 0
  /** The line of each `custom_id`. */
  readonly #lineOf = new Map<string, number>()

  /** Throws an `InvalidLine`. */
  add(text: string, number: number): void {
    const request = parseObject(text)
    const { custom_id: id, url } = request
    const format = formatOf(request)
    if (this.#firstLine === 0) {
      this.#firstLine = number
      this.format = format
      if (format === 'openai') this.endpoint = String(url)
    }
    if (format !== this.format)
      throw new InvalidLine(
        `expected a request in the format of ${names[this.format]}, as in line ${this.#firstLine}, got one in that of ${names[format]}.`,
      )
    if (format === 'openai' && url !== this.endpoint)
      throw new InvalidLine(
        `url: expected '${this.endpoint}', as in line ${this.#firstLine}: a batch has one endpoint.`,
      )
    if (typeof id !== 'string' || id === '')
      throw new InvalidLine('custom_id: expected a text that is not empty.')
    const other = this.#lineOf.get(id)
    if (other !== undefined)
      throw new InvalidLine(`custom_id: '${id.slice(0, 100)}' is also the id in line ${other}.`)
    this.#lineOf.set(id, number)
  }
}

const names: Readonly<Record<LineFormat, string>> = { anthropic: 'Anthropic', openai: 'OpenAI' }

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidLine('the line is not valid JSON.')
  }
  if (isObject(value)) return value
  throw new InvalidLine('expected a JSON object.')
}

function formatOf({ params, url, body }: Readonly<Record<string, unknown>>): LineFormat {
  if (isObject(params)) return 'anthropic'
  if (typeof url === 'string' && isObject(body)) return 'openai'
  throw new InvalidLine(
    'expected a request with custom_id and params (Anthropic), or with custom_id, method, url and body (OpenAI).',
  )
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
