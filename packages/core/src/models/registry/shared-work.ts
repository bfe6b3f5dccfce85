/** Work that several wait for, and that ends early only when none of them does any more. */

export class SharedWork<T> {
  readonly work: T
  /** For better or worse. */
  readonly ended: Promise<void>
  readonly #controller = new AbortController()
  #waiterCount = 0

  constructor(work: T, run: (signal: AbortSignal) => Promise<void>) {
    this.work = work
    this.ended = run(this.#controller.signal)
    // Who waits is told by `join`.
    this.ended.catch(() => {})
  }

  /** Not once all have left: it is about to end. */
  get isJoinable(): boolean {
    return !this.#controller.signal.aborted
  }

  /** Ends with the work, or throws when this signal does. */
  async join(signal: AbortSignal): Promise<void> {
    this.#waiterCount++
    const abortion = whenAborted(signal)
    try {
      await Promise.race([this.ended, abortion.promise])
    } finally {
      abortion.forget()
      if (--this.#waiterCount === 0) this.#controller.abort(signal.reason)
    }
  }
}

function whenAborted(signal: AbortSignal): { readonly promise: Promise<never>; forget(): void } {
  let dispose = (): void => {}
  const promise = new Promise<never>((_, reject) => {
    const onAbort = (): void => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
    dispose = () => signal.removeEventListener('abort', onAbort)
  })
  return { promise, forget: dispose }
}
