/** Decouples a producer from a slow reader. Items are buffered, so the producer never waits. */

type Produce<T> = (push: (item: T) => void, signal: AbortSignal) => Promise<void>

/**
 * Returns an iterator over the items that `produce` pushes. `produce` starts at the first pull, and does not
 * wait for the reader. The iterator ends without an error when `signal` aborts or the reader stops. In both
 * cases, the signal that `produce` receives aborts. If `produce` fails, the items that it pushed before are
 * still delivered.
 *
 * @param onConsume called with each item that the reader takes
 */
export function readAhead<T>(
  signal: AbortSignal,
  produce: Produce<T>,
  onConsume: (item: T) => void = () => {},
): AsyncIterableIterator<T> {
  return new ReadAheadQueue(signal, produce, onConsume)
}

class ReadAheadQueue<T> implements AsyncIterableIterator<T> {
  readonly #signal: AbortSignal
  readonly #produce: Produce<T>
  readonly #onConsume: (item: T) => void
  /** Not `AbortSignal.any`, because each use would leave an entry on a signal that lives long. */
  readonly #controller = new AbortController()
  readonly #items: T[] = []
  #state: 'idle' | 'running' | 'ended' | { readonly error: unknown } = 'idle'
  #wake: (() => void) | undefined

  constructor(signal: AbortSignal, produce: Produce<T>, onConsume: (item: T) => void) {
    this.#signal = signal
    this.#produce = produce
    this.#onConsume = onConsume
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<T>> {
    const stopped = this.#controller.signal
    if (this.#state === 'idle' && !this.#signal.aborted && !stopped.aborted) this.#start()
    while (this.#state !== 'idle' && !stopped.aborted) {
      if (this.#items.length > 0) {
        const value = this.#items.shift() as T
        this.#onConsume(value)
        return { value, done: false }
      }
      if (this.#state === 'ended') break
      if (typeof this.#state === 'object') {
        const { error } = this.#state
        this.#state = 'ended'
        throw error
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return { value: undefined, done: true }
  }

  async return(value?: unknown): Promise<IteratorResult<T>> {
    this.#controller.abort()
    return { value, done: true }
  }

  #start(): void {
    this.#state = 'running'
    const notify = (): void => this.#wake?.()
    const abort = (): void => this.#controller.abort()
    this.#controller.signal.addEventListener('abort', notify, { once: true })
    this.#signal.addEventListener('abort', abort, { once: true })
    if (this.#signal.aborted) abort()
    const push = (item: T): void => {
      this.#items.push(item)
      notify()
    }
    this.#produce(push, this.#controller.signal)
      .then(
        () => {
          this.#state = 'ended'
        },
        (error: unknown) => {
          this.#state = { error }
        },
      )
      .then(() => {
        this.#signal.removeEventListener('abort', abort)
        notify()
      })
  }
}
