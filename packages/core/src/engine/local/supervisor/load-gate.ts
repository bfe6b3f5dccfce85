/**
 * Admits the calls of one model. Calls with the same load settings run side by side. A call with other
 * settings may have to wait until the loaded model has served for its minimum time. Until then, later calls
 * overtake it. All other calls are admitted in order of arrival.
 */
import { WaitQueue } from '../../../util/wait-queue.ts'

interface QueuedLoad {
  /**
   * Returns the load key of this call. Calls with equal keys run side by side. `current` is the key of the
   * call that was admitted last.
   */
  readonly chooseKey: (current: string | undefined) => string
  /**
   * Returns for how long the loaded model must still serve before this call may reload it, in milliseconds.
   */
  readonly reloadDelayMs: () => number
}

export class LoadGate {
  readonly #queue = new WaitQueue<QueuedLoad>({
    select: (waiting) => this.#select(waiting),
    admit: () => {
      this.#activeCalls++
    },
  })
  #currentKey: string | undefined
  #activeCalls = 0
  /** Fires when the loaded model has served for its minimum time, while a call waits for that. */
  #pumpTimer: NodeJS.Timeout | undefined

  /**
   * Resolves with a function that leaves the gate, or with `undefined` when the signal aborts first.
   * @param call an object of this call only
   */
  async enter(signal: AbortSignal, call: QueuedLoad): Promise<(() => void) | undefined> {
    if (!(await this.#queue.wait(call, signal))) return undefined
    return () => {
      this.#activeCalls--
      this.#queue.pump()
    }
  }

  /** Admits the calls that may enter now. Call it when `reloadDelayMs` or the keys of calls have changed. */
  pump(): void {
    this.#queue.pump()
  }

  #select(waiting: readonly QueuedLoad[]): QueuedLoad | undefined {
    clearTimeout(this.#pumpTimer)
    for (const call of waiting) {
      const key = call.chooseKey(this.#currentKey)
      if (key === this.#currentKey) return call
      if (call.reloadDelayMs() > 0) continue
      // If calls with the current key still overtook this call, it could wait forever.
      if (this.#activeCalls > 0) return undefined
      this.#currentKey = key
      return call
    }
    if (waiting.length > 0) this.#pumpLater(waiting)
    return undefined
  }

  #pumpLater(waiting: readonly QueuedLoad[]): void {
    const delayMs = Math.min(...waiting.map(({ reloadDelayMs }) => reloadDelayMs()))
    this.#pumpTimer = setTimeout(() => this.#queue.pump(), Math.ceil(delayMs))
  }
}
