/** The recorded exchanges, in chronological order. */
import { readFileSync } from 'node:fs'

export interface Exchange {
  /** A unique number and the request: `017-wrong-method-get-api-generate`. */
  readonly id: string
  readonly request: RecordedRequest
  readonly response: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
}

export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Text. Invalid UTF-8 bytes are written as `\xff`. */
  readonly body?: string
  /** Name of the file that is the body. */
  readonly upload?: string
}

export const exchanges: readonly Exchange[] = readFileSync(
  new URL('exchanges.jsonl', import.meta.url),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))
