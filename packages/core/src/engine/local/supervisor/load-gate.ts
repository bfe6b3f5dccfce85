/**
 * Admits the calls of one model. Calls with the same load settings run side by side. A call with other
 * settings waits until the loaded model has served for its minimum time. Until then, later calls that the
 * loaded model can serve overtake it. Afterwards, calls are admitted in order of arrival.
 */
import { WaitQueue } from '../../../util/wait-queue.ts'

/**
 * Returns the load key of a call. Calls with equal keys run side by side. `current` is the key of the call
 * that was admitted last.
 */
export type ChooseLoadKey = (current: string | undefined) => string

interface QueuedLoad {
  readonly chooseKey: ChooseLoadKey
}

export class LoadGate {
  readonly #reloadDelayMs: () => number
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
   * @param reloadDelayMs returns for how long the loaded model must still serve before it may be reloaded, in
   * milliseconds
   */
  constructor(reloadDelayMs: () => number = () => 0) {
    this.#reloadDelayMs = reloadDelayMs
  }

  /** Resolves with a function that leaves the gate, or with `undefined` when the signal aborts first. */
  async enter(signal: AbortSignal, chooseKey: ChooseLoadKey): Promise<(() => void) | undefined> {
    if (!(await this.#queue.wait({ chooseKey }, signal))) return undefined
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
    const [head] = waiting
    if (!head) return undefined
    const key = head.chooseKey(this.#currentKey)
    if (key === this.#currentKey) return head
    const delayMs = this.#reloadDelayMs()
    if (delayMs > 0) {
      this.#pumpTimer = setTimeout(() => this.#queue.pump(), Math.ceil(delayMs))
      return waiting.find(({ chooseKey }) => chooseKey(this.#currentKey) === this.#currentKey)
    }
    // If calls with the current key still overtook the head, it could wait forever.
    if (this.#activeCalls > 0) return undefined
    this.#currentKey = key
    return head
  }
}
