/** Builds grammars in a worker with a deadline and a memory limit, since anyone may send any schema. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { invalidRequest } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { fromWireError, type WireError } from '../ipc/wire-error.ts'
import { BoundedWorker } from './bounded-worker.ts'

const deadlineMs = 2_000
const memoryMb = 256
/** A conversation sends its tools with each turn. */
const maxCachedGrammars = 16

/** `source` is absent where any text matches. */
interface BuiltGrammar {
  readonly source: string | undefined
}
export type GrammarResult = BuiltGrammar | { readonly error: WireError }

/** Builds one grammar at a time. */
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

  readonly #built = new LRUCache<string, BuiltGrammar>({ max: maxCachedGrammars })

  /** GBNF. Returns `undefined` where any text matches, or the signal has aborted. Throws `invalid_request`. */
  async build(constraint: OutputConstraint, signal: AbortSignal): Promise<string | undefined> {
    const key = createHash('sha256').update(JSON.stringify(constraint)).digest('base64')
    const cached = this.#built.get(key)
    if (cached) return cached.source
    const result = await this.#worker.run(constraint, signal)
    if (!result) return undefined
    if ('error' in result) throw fromWireError(result.error)
    this.#built.set(key, result)
    return result.source
  }
}
