/** Calls a function after a delay. Ignores further requests while a call is pending. */
export class DelayedCall {
  readonly #call: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(call: () => void) {
    this.#call = call
  }

  /** Does nothing while a call is pending, even if that one comes later. */
  schedule(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#call()
    }, Math.ceil(ms))
  }
}
