/** The recorded exchanges, in the order in which they happened. */
import { readFileSync } from 'node:fs'

export interface Exchange {
  /** A number of its own, then what is asked: `017-wrong-method-get-api-generate`. */
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
  /** As text. A byte that no text has is written `\xff`. */
  readonly body?: string
  /** The name of a file that is the body. */
  readonly upload?: string
}

export const exchanges: readonly Exchange[] = readFileSync(
  new URL('exchanges.jsonl', import.meta.url),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))
