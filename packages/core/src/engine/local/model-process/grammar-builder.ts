/** Builds grammars in workers with limits of CPU time and memory, since schemas come from clients. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { invalidRequest } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { fromWireError, type WireError } from '../ipc/wire-error.ts'
import type { StepCounter } from './model.ts'
import { BoundedWorker } from './workers/bounded-worker.ts'
import type { CpuBudget } from './workers/cpu-budget.ts'
import { type PoolWorker, WorkerPool } from './workers/worker-pool.ts'

/** Maximum CPU time for one grammar, in ms. It also counts towards the budget of the call. */
const maxBuildMs = 2_000
const memoryMb = 256
/** How long idle workers are kept, in ms. The first is kept until this process ends. */
const idleMs = 60_000
/**
 * Number of cached grammars. A conversation sends the same tools, and needs the same grammar, in each turn.
 */
const maxCachedGrammars = 16

/** `source` is GBNF. It is `undefined` if the constraint allows any text. */
interface BuiltGrammar {
  readonly source: string | undefined
}
export type GrammarResult = BuiltGrammar | { readonly error: WireError }

/** Builds the grammars of all tenants in turn. */
export class GrammarBuilder {
  readonly #pool: WorkerPool<OutputConstraint, GrammarResult>
  readonly #built = new LRUCache<string, BuiltGrammar>({ max: maxCachedGrammars })

  /** @param progress counts grammars */
  constructor(
    progress: StepCounter,
    create: (isFirst: boolean) => PoolWorker<OutputConstraint, GrammarResult> = createThread,
  ) {
    this.#pool = new WorkerPool(create, {
      maxJobMs: maxBuildMs,
      onProgress: () => {
        progress.steps++
      },
    })
  }

  /**
   * Returns GBNF, or `undefined` if the constraint allows any text or the signal of the budget aborts before the
   * start. Throws an `LlmError` `invalid_request` if the grammar cannot be built.
   */
  async build(constraint: OutputConstraint, budget: CpuBudget): Promise<string | undefined> {
    const key = createHash('sha256').update(JSON.stringify(constraint)).digest('base64')
    const cached = this.#built.get(key)
    if (cached) return cached.source
    const result = await this.#pool.run(constraint, budget)
    if (!result) return undefined
    if ('error' in result) throw fromWireError(result.error)
    this.#built.set(key, result)
    return result.source
  }
}

const createThread = (isFirst: boolean): PoolWorker<OutputConstraint, GrammarResult> =>
  new BoundedWorker(new URL('./grammar-worker.js', import.meta.url), {
    memoryMb,
    ...(!isFirst && { idleMs }),
    limitError: (what) =>
      invalidRequest(`Building a grammar takes too much ${what}. Use a simpler schema or fewer tools.`, {
        issue: 'value',
      }),
  })
