/** Splits bytes into lines of text. */
import { invalidRequest, type LlmError } from '../../errors.ts'

export interface Line {
  /** From 1. */
  readonly number: number
  /** Without the line break. Empty for a blank line. */
  readonly text: string
}

/** Throws an `LlmError` `invalid_request` for a line that is longer than `maxBytes`, or that is not valid UTF-8. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  let number = 0
  let pieces: Uint8Array[] = []
  let length = 0
  const toLine = (): Line => {
    number++
    const bytes = Buffer.concat(pieces)
    pieces = []
    length = 0
    try {
      // Also removes a byte order mark at the beginning of the file.
      return { number, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim() }
    } catch {
      throw invalidRequest(`Line ${number} is not valid UTF-8.`)
    }
  }
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; ) {
      const at = chunk.indexOf(lineFeed, from)
      const end = at === -1 ? chunk.length : at
      pieces.push(chunk.subarray(from, end))
      length += end - from
      if (length > maxBytes) throw lineTooLong(number + 1, maxBytes)
      if (at !== -1) yield toLine()
      from = end + 1
    }
  }
  if (length > 0) yield toLine()
}

const lineFeed = 0x0a

const lineTooLong = (number: number, maxBytes: number): LlmError =>
  invalidRequest(`Line ${number} is longer than ${maxBytes} bytes.`)
