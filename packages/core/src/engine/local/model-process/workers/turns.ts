import { setImmediate } from 'node:timers/promises'
import { WaitQueue } from '../../../../util/wait-queue.ts'
import { type CpuBudget, selectNext } from './cpu-budget.ts'

interface QueuedWork {
  readonly budget: CpuBudget
}

/**
 * Runs short pieces of work of all tenants on this thread, in turn. One piece runs in each turn of the event
 * loop, and the model decodes in between.
 */
export class Turns {
  #isBusy = false
  readonly #queue = new WaitQueue<QueuedWork>({
    select: (waiting) => (this.#isBusy ? undefined : selectNext(waiting)),
    admit: () => {
      this.#isBusy = true
    },
  })

  /**
   * Charges the running time to the budget. Resolves with `undefined` when the signal of the budget aborts
   * before the turn comes.
   */
  async run<T>(budget: CpuBudget, work: () => T): Promise<T | undefined> {
    if (!(await this.#queue.wait({ budget }, budget.signal))) return undefined
    await setImmediate()
    const startedAt = performance.now()
    try {
      return work()
    } finally {
      this.#isBusy = false
      budget.charge(performance.now() - startedAt)
      this.#queue.pump()
    }
  }
}
