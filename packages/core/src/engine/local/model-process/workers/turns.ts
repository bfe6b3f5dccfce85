import { setImmediate } from 'node:timers/promises'
import { DelayedCall } from '../../../../util/delayed-call.ts'
import { WaitQueue } from '../../../../util/wait-queue.ts'
import { type CpuBudget, listAwake, restCheckMs, selectNext } from './cpu-budget.ts'

/** Pause after a piece of work while the model decodes, relative to the duration of the piece. */
const restPerWork = 4
/** Longest pause, in ms. */
const maxRestMs = 100
/** No pause follows a shorter piece, in ms. */
const shortMs = 1.5

interface QueuedWork {
  readonly budget: CpuBudget
  readonly isShort: boolean
}

/**
 * Runs pieces of work of all tenants on this thread, in turn. One piece runs in each turn of the event loop.
 * While the model decodes, which needs this thread after each step, long pieces take a fifth of the time.
 */
export class Turns {
  readonly #isDecoding: () => boolean
  #isBusy = false
  /** End of the pause after the last piece, in ms. */
  #restsUntil = 0
  readonly #nextCheck = new DelayedCall(() => this.#queue.pump())
  readonly #queue = new WaitQueue<QueuedWork>({
    select: (waiting) => this.#selectNext(waiting),
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
   * @param isShort whether the work usually takes about a millisecond. It runs during pauses, too
   */
  async run<T>(budget: CpuBudget, work: () => T, isShort = false): Promise<T | undefined> {
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
      if (ms > shortMs) this.#restsUntil = now + Math.min(restPerWork * ms, maxRestMs)
      this.#queue.pump()
    }
  }

  #selectNext(waiting: readonly QueuedWork[]): QueuedWork | undefined {
    if (this.#isBusy) return undefined
    const restMs = this.#isDecoding() ? this.#restsUntil - performance.now() : 0
    const ready = listAwake(restMs > 0 ? waiting.filter(({ isShort }) => isShort) : waiting)
    if (ready.length < waiting.length) this.#nextCheck.schedule(restMs > 0 ? restMs : restCheckMs)
    return selectNext(ready)
  }
}
