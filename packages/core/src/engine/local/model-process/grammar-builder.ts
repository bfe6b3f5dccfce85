/** Builds grammars in workers with limits of CPU time and memory, since schemas come from clients. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { unlessAborted } from '../../../util/abort.ts'
import { fromWireError, toWireError, type WireError } from '../../wire/wire-error.ts'
import type { StepCounter } from './model.ts'
import { BoundedWorker } from './workers/bounded-worker.ts'
import { type CpuBudget, callBudgetMs } from './workers/cpu-budget.ts'
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

/** Builds the grammars of all tenants in turn. Equal grammars of one tenant are built once. */
export class GrammarBuilder {
  readonly #pool: WorkerPool<OutputConstraint, GrammarResult>
  readonly #built = new LRUCache<string, BuiltGrammar>({ max: maxCachedGrammars })
  /** Grammars that are queued or built now. The promises never reject. */
  readonly #running = new Map<string, Promise<GrammarResult | undefined>>()

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
    // Tenants do not share a running build, or one would wait until the other's turn comes.
    const runningKey = JSON.stringify([key, budget.tenant, budget.background])
    for (;;) {
      const cached = this.#built.get(key)
      if (cached) return cached.source
      const running = this.#running.get(runningKey)
      if (!running) return toSource(await this.#start(constraint, budget, key, runningKey))
      const result = await unlessAborted(running, budget.signal)
      if (result || budget.signal.aborted) return toSource(result)
      // The other call was aborted or had too little CPU time left, so this call needs a build of its own.
    }
  }

  #start(
    constraint: OutputConstraint,
    budget: CpuBudget,
    key: string,
    runningKey: string,
  ): Promise<GrammarResult | undefined> {
    const running = this.#pool
      .run(constraint, budget)
      .then((result) => {
        if (result && !('error' in result)) this.#built.set(key, result)
        return result
      })
      .catch((cause: unknown) => {
        throw nameField(cause, constraint)
      })
      .finally(() => this.#running.delete(runningKey))
    const shared = running.catch((cause: unknown) => {
      // The limits of one grammar are the same for all calls. The rest of a call's CPU time is not.
      const isSameForAll =
        LlmError.is(cause) &&
        cause.code === 'invalid_request' &&
        !budget.signal.aborted &&
        budget.remainingMs > 0
      return isSameForAll ? { error: toWireError(cause) } : undefined
    })
    this.#running.set(runningKey, shared)
    return running
  }
}

function toSource(result: GrammarResult | undefined): string | undefined {
  if (!result) return undefined
  if ('error' in result) throw fromWireError(result.error)
  return result.source
}

/** Adds the field of the request to an error without one. If there is a format and tools, names the format. */
function nameField(cause: unknown, { format }: OutputConstraint): unknown {
  if (!LlmError.is(cause) || cause.code !== 'invalid_request' || cause.details.param !== undefined)
    return cause
  return invalidRequest(cause.message, {
    ...cause.details,
    param: format ? formatFields[format.type] : 'tools',
  })
}
const formatFields = {
  json: 'format',
  'json-schema': 'format.schema',
  grammar: 'format.source',
  regex: 'format.pattern',
  choice: 'format.choices',
} as const

const limits = {
  time: `${maxBuildMs / 1_000} s of CPU time, within the ${callBudgetMs / 1_000} s for each call`,
  memory: `${memoryMb} MB`,
}
const createThread = (isFirst: boolean): PoolWorker<OutputConstraint, GrammarResult> =>
  new BoundedWorker(new URL('./grammar-worker.js', import.meta.url), {
    memoryMb,
    ...(!isFirst && { idleMs }),
    limitError: (what) =>
      invalidRequest(
        `Building a grammar takes too much ${what}. The limit is ${limits[what]}. Use a simpler schema or fewer tools.`,
        { issue: 'value' },
      ),
  })
