/** Schemas come from anywhere: grammars are made of them in a worker, with a deadline and a cap. */
import { createHash } from 'node:crypto'
import { invalidRequest } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { fromWireError, type WireError } from '../ipc/protocol.ts'
import { BoundedWorker } from './bounded-worker.ts'

const deadlineMs = 2_000
const memoryMb = 256
/** So many are kept: a conversation brings its tools with each turn. */
const maxCachedGrammars = 16

export type GrammarResult = { readonly source: string | undefined } | { readonly error: WireError }

/** One grammar at a time; the others wait. */
export class GrammarBuilder {
  readonly #worker = new BoundedWorker<OutputConstraint, GrammarResult>(
    new URL('./grammar-worker.js', import.meta.url),
    {
      deadlineMs,
      memoryMb,
      limitError: (what) =>
        invalidRequest(`It takes too much ${what} to make a grammar of this. Ask for something simpler.`, {
          issue: 'value',
        }),
    },
  )

  readonly #built = new Map<string, string | undefined>()

  /** GBNF; nothing where any text will do, or for callers who have left. Throws `invalid_request`. */
  async build(constraint: OutputConstraint, signal: AbortSignal): Promise<string | undefined> {
    const key = createHash('sha256').update(JSON.stringify(constraint)).digest('base64')
    if (this.#built.has(key)) return this.#remember(key, this.#built.get(key))
    const result = await this.#worker.run(constraint, signal)
    if (!result) return undefined
    if ('error' in result) throw fromWireError(result.error)
    return this.#remember(key, result.source)
  }

  #remember(key: string, source: string | undefined): string | undefined {
    this.#built.delete(key)
    this.#built.set(key, source)
    for (const [oldest] of this.#built) if (this.#built.size > maxCachedGrammars) this.#built.delete(oldest)
    return source
  }
}
