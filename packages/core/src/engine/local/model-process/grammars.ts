/** Schemas come from anywhere: grammars are made of them in a worker, with a deadline and a cap. */
import { createHash } from 'node:crypto'
import { invalidRequest } from '../../../errors.ts'
import type { AnswerForm } from '../../../grammar/output-grammar.ts'
import { fromWire, type WireError } from '../ipc/protocol.ts'
import { BoundedWorker } from './bounded-worker.ts'

const deadlineMs = 2_000
const memoryMb = 256
/** So many are kept: a conversation brings its tools with each turn. */
const kept = 16

export type GrammarResult = { readonly source: string | undefined } | { readonly error: WireError }

/** One grammar at a time; the others wait. */
export class Grammars {
  readonly #worker = new BoundedWorker<AnswerForm, GrammarResult>(
    new URL('./grammar-worker.js', import.meta.url),
    {
      deadlineMs,
      memoryMb,
      tooMuch: (what) =>
        invalidRequest(`It takes too much ${what} to make a grammar of this. Ask for something simpler.`, {
          issue: 'value',
        }),
    },
  )

  readonly #made = new Map<string, string | undefined>()

  /** GBNF; nothing where any text will do, or for callers who have left. Throws `invalid_request`. */
  async make(form: AnswerForm, signal: AbortSignal): Promise<string | undefined> {
    const key = createHash('sha256').update(JSON.stringify(form)).digest('base64')
    if (this.#made.has(key)) return this.#keep(key, this.#made.get(key))
    const result = await this.#worker.run(form, signal)
    if (!result) return undefined
    if ('error' in result) throw fromWire(result.error)
    return this.#keep(key, result.source)
  }

  #keep(key: string, source: string | undefined): string | undefined {
    this.#made.delete(key)
    this.#made.set(key, source)
    for (const [oldest] of this.#made) if (this.#made.size > kept) this.#made.delete(oldest)
    return source
  }
}
