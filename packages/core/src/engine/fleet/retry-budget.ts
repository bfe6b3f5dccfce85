/** Limits retries to a share of the calls, so that a fleet in trouble does not get many times its calls. */

/** Retries that are possible at once, such as when a replica with many calls ends. */
const reserve = 50

export class RetryBudget {
  readonly #share: number
  #retries = reserve

  /** @param share retries per call, from 0 to 1. With 0, there are none */
  constructor(share: number) {
    this.#share = share
  }

  onCall(): void {
    this.#retries = Math.min(reserve, this.#retries + this.#share)
  }

  /** Whether a call may be sent again. */
  take(): boolean {
    // The sum of many shares is a little below a whole number.
    if (this.#share === 0 || this.#retries < 1 - 1e-9) return false
    this.#retries -= 1
    return true
  }
}
