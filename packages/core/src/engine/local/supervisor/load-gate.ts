/**
 * Which calls of a model are let in: those that want it loaded in one way, side by side, then those of the next
 * way, in order of arrival. Who leaves the queue never gets in.
 */
/** What a call wants, given what the calls inside have. Those with the same get in together. */
export type ChooseLoadKey = (current: string | undefined) => string

interface QueuedLoad {
  readonly chooseKey: ChooseLoadKey
  admit(): void
}

export class LoadGate {
  #queue: QueuedLoad[] = []
  #currentKey: string | undefined
  #activeCalls = 0

  /** Resolves with the way out, or with nothing once the signal has aborted. */
  async enter(signal: AbortSignal, chooseKey: ChooseLoadKey): Promise<(() => void) | undefined> {
    if (signal.aborted || !(await this.#waitForAdmission(signal, chooseKey))) return undefined
    return () => {
      this.#activeCalls--
      this.#admitQueued()
    }
  }

  #waitForAdmission(signal: AbortSignal, chooseKey: ChooseLoadKey): Promise<boolean> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#queue = this.#queue.filter((one) => one !== queued)
        resolve(false)
        // Others may have waited for this one.
        this.#admitQueued()
      }
      const queued: QueuedLoad = {
        chooseKey,
        admit: () => {
          signal.removeEventListener('abort', onAbort)
          resolve(true)
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#queue.push(queued)
      this.#admitQueued()
    })
  }

  /** Nobody overtakes: who wants it otherwise would wait for ever. */
  #admitQueued(): void {
    for (;;) {
      const [next] = this.#queue
      if (!next) return
      const key = next.chooseKey(this.#currentKey)
      if (this.#activeCalls > 0 && key !== this.#currentKey) return
      this.#queue.shift()
      this.#currentKey = key
      this.#activeCalls++
      next.admit()
    }
  }
}
