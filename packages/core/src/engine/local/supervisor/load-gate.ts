/**
 * Admits the calls of one model. Calls with the same load settings run side by side. Other calls wait in
 * order of arrival.
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
  readonly #queue = new WaitQueue<QueuedLoad>({
    select: (waiting) => this.#select(waiting),
    admit: () => {
      this.#activeCalls++
    },
  })
  #currentKey: string | undefined
  #activeCalls = 0

  /** Resolves with a function that leaves the gate, or with `undefined` when the signal aborts first. */
  async enter(signal: AbortSignal, chooseKey: ChooseLoadKey): Promise<(() => void) | undefined> {
    if (!(await this.#queue.wait({ chooseKey }, signal))) return undefined
    return () => {
      this.#activeCalls--
      this.#queue.pump()
    }
  }

  /** Admits only the head of the queue. If calls with the current key overtook it, it could wait forever. */
  #select([head]: readonly QueuedLoad[]): QueuedLoad | undefined {
    if (!head) return undefined
    const key = head.chooseKey(this.#currentKey)
    if (this.#activeCalls > 0 && key !== this.#currentKey) return undefined
    this.#currentKey = key
    return head
  }
}
