/** Work with several waiters, cancelled when the last one leaves. */

export class SharedWork<T> {
  readonly work: T
  /** Settles with the work. */
  readonly ended: Promise<void>
  readonly #controller = new AbortController()
  #waiterCount = 0

  constructor(work: T, run: (signal: AbortSignal) => Promise<void>) {
    this.work = work
    this.ended = run(this.#controller.signal)
    // `join` reports the failure to waiters.
    this.ended.catch(() => {})
  }

  /** `false` once all waiters have left: the work is being cancelled. */
  get isJoinable(): boolean {
    return !this.#controller.signal.aborted
  }

  /** Settles with the work, or rejects with the signal's reason. */
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
