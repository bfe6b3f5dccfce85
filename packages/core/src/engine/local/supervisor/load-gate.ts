/**
 * Which calls of a model are let in: those that want it loaded in one way, side by side, then those of the next
 * way, in order of arrival. Who leaves the queue never gets in.
 */
/** What a call wants, given what the calls inside have. Those with the same get in together. */
export type KeyOf = (current: string | undefined) => string

interface Waiting {
  readonly keyOf: KeyOf
  enter(): void
}

export class Turns {
  #waiting: Waiting[] = []
  #key: string | undefined
  #inside = 0

  /** Resolves with the way out, or with nothing once the signal has aborted. */
  async take(signal: AbortSignal, keyOf: KeyOf): Promise<(() => void) | undefined> {
    if (signal.aborted || !(await this.#entered(signal, keyOf))) return undefined
    return () => {
      this.#inside--
      this.#admit()
    }
  }

  #entered(signal: AbortSignal, keyOf: KeyOf): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting)
        resolve(false)
        // Others may have waited for this one.
        this.#admit()
      }
      const waiting: Waiting = {
        keyOf,
        enter: () => {
          signal.removeEventListener('abort', leave)
          resolve(true)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(waiting)
      this.#admit()
    })
  }

  /** Nobody overtakes: who wants it otherwise would wait for ever. */
  #admit(): void {
    for (;;) {
      const [next] = this.#waiting
      if (!next) return
      const key = next.keyOf(this.#key)
      if (this.#inside > 0 && key !== this.#key) return
      this.#waiting.shift()
      this.#key = key
      this.#inside++
      next.enter()
    }
  }
}
