import { setImmediate } from 'node:timers/promises'
import { WaitQueue } from '../../../../util/wait-queue.ts'
import { type CpuBudget, selectNext } from './cpu-budget.ts'

/** Pause after a piece of work while the model decodes, relative to the duration of the piece. */
const restPerWork = 4

interface QueuedWork {
  readonly budget: CpuBudget
  readonly isShort: boolean
}

/**
 * Runs pieces of work of all tenants on this thread, in turn. One piece runs in each turn of the event loop.
 * While the model decodes, which needs this thread after each step, the pieces take a fifth of the time.
 */
export class Turns {
  readonly #isDecoding: () => boolean
  #isBusy = false
  /** End of the pause after the last piece, in ms. */
  #restsUntil = 0
  readonly #queue = new WaitQueue<QueuedWork>({
    select: (waiting) => {
      if (this.#isBusy) return undefined
      const isResting = performance.now() < this.#restsUntil && this.#isDecoding()
      return selectNext(isResting ? waiting.filter(({ isShort }) => isShort) : waiting)
    },
    admit: () => {
      this.#isBusy = true
    },
  })

  constructor(isDecoding = () => false) {
    this.#isDecoding = isDecoding
  }

  /**
   * Charges the running time to the budget. Resolves with `undefined` when the signal of the budget aborts
   * before the turn comes.
   * @param isShort whether the work takes about a millisecond, so that no pause is needed
   */
  async run<T>(budget: CpuBudget, work: () => T, isShort = false): Promise<T | undefined> {
    if (!isShort) await budget.pace()
    if (!(await this.#queue.wait({ budget, isShort }, budget.signal))) return undefined
    await setImmediate()
    const startedAt = performance.now()
    try {
      return work()
    } finally {
      const now = performance.now()
      const ms = now - startedAt
      this.#isBusy = false
      budget.charge(ms)
      if (!isShort) this.#rest(now, ms)
      this.#queue.pump()
    }
  }

  #rest(from: number, workMs: number): void {
    const restMs = restPerWork * workMs
    this.#restsUntil = from + restMs
    setTimeout(() => this.#queue.pump(), restMs + 1)
  }
}
