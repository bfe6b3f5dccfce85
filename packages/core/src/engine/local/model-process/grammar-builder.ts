/** Builds grammars in a worker with a deadline and a memory limit, since schemas come from clients. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { invalidRequest } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { fromWireError, type WireError } from '../ipc/wire-error.ts'
import { BoundedWorker } from './workers/bounded-worker.ts'

const deadlineMs = 2_000
const memoryMb = 256
/**
 * Number of cached grammars. A conversation sends the same tools, and needs the same grammar, in each turn.
 */
const maxCachedGrammars = 16

/** `source` is GBNF. It is `undefined` if the constraint allows any text. */
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
        invalidRequest(`Building a grammar takes too much ${what}. Use a simpler schema or fewer tools.`, {
          issue: 'value',
        }),
    },
  )

  readonly #built = new LRUCache<string, BuiltGrammar>({ max: maxCachedGrammars })

  /**
   * Returns GBNF, or `undefined` if the constraint allows any text or the signal aborts before the start.
   * Throws an `LlmError` `invalid_request` if the grammar cannot be built.
   */
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
