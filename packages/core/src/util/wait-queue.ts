/** A queue of entries that wait for admission. Its options decide which entry is admitted, and when. */
export interface WaitQueueOptions<Entry> {
  /**
   * Returns the next entry to admit, or `undefined` to admit no entry now. `waiting` is in order of arrival.
   */
  select(waiting: readonly Entry[]): Entry | undefined
  /** Runs when an entry has left the queue, before its `wait` resolves. */
  admit?(entry: Entry): void
}

interface Waiter {
  resolve(isAdmitted: boolean): void
  reject(error: Error): void
}

export class WaitQueue<Entry extends object> {
  readonly #options: WaitQueueOptions<Entry>
  /** In order of arrival. */
  readonly #waiters = new Map<Entry, Waiter>()

  constructor(options: WaitQueueOptions<Entry>) {
    this.#options = options
  }

  get size(): number {
    return this.#waiters.size
  }

  has(entry: Entry): boolean {
    return this.#waiters.has(entry)
  }

  get waiting(): readonly Entry[] {
    return [...this.#waiters.keys()]
  }

  /**
   * Resolves with `true` on admission, or with `false` when the signal aborts first. Do not pass an entry
   * that is already waiting.
   */
  wait(entry: Entry, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.delete(entry)
        resolve(false)
        // `select` may have held back later entries because of this entry.
        this.pump()
      }
      const forget = (): void => signal.removeEventListener('abort', onAbort)
      this.#waiters.set(entry, {
        resolve: (isAdmitted) => {
          forget()
          resolve(isAdmitted)
        },
        reject: (error) => {
          forget()
          reject(error)
        },
      })
      signal.addEventListener('abort', onAbort, { once: true })
      this.pump()
    })
  }

  /** Admits entries as long as `select` picks one. */
  pump(): void {
    for (;;) {
      const entry = this.#options.select(this.waiting)
      const waiter = entry && this.#waiters.get(entry)
      if (!waiter) return
      this.#waiters.delete(entry)
      this.#options.admit?.(entry)
      waiter.resolve(true)
    }
  }

  /** Removes an entry, whose `wait` then rejects. */
  reject(entry: Entry, error: Error): void {
    const waiter = this.#waiters.get(entry)
    this.#waiters.delete(entry)
    waiter?.reject(error)
  }

  rejectAll(error: Error): void {
    for (const entry of this.waiting) this.reject(entry, error)
  }
}
