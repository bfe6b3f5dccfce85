/** A timer that can be set repeatedly. Only an earlier time replaces the one before. */
export class EarliestTimer {
  /** Resolves at the time. */
  readonly expired: Promise<void>
  /** By the clock of `performance.now()`. */
  #at = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #expire: () => void = () => {}

  constructor() {
    this.expired = new Promise((resolve) => {
      this.#expire = resolve
    })
  }

  /** Sets the time to `ms` from now, unless it is already earlier. */
  set(ms: number): void {
    const at = performance.now() + ms
    if (at >= this.#at) return
    this.#at = at
    clearTimeout(this.#timer)
    if (ms === 0) this.#expire()
    else this.#timer = setTimeout(this.#expire, ms)
  }

  /** Stops the timer, which would keep the process running. */
  clear(): void {
    clearTimeout(this.#timer)
  }
}
