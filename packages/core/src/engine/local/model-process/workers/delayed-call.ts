/** Calls a function later, at most once at a time. */
export class DelayedCall {
  readonly #call: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(call: () => void) {
    this.#call = call
  }

  /** Does nothing while a call is pending, even if that one comes later. */
  arm(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#call()
    }, Math.ceil(ms))
  }
}
