/** Admits the calls of one model: calls that need the same load run side by side, the others wait in order of arrival. */
import { WaitQueue } from '../../../util/wait-queue.ts'

/** Returns the load that a call needs, given that of the calls inside. Calls with equal keys run side by side. */
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

  /** Only the head of the queue: if calls with the current key overtook it, it could wait for ever. */
  #select([head]: readonly QueuedLoad[]): QueuedLoad | undefined {
    if (!head) return undefined
    const key = head.chooseKey(this.#currentKey)
    if (this.#activeCalls > 0 && key !== this.#currentKey) return undefined
    this.#currentKey = key
    return head
  }
}
