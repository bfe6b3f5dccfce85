/** The answer of `llm.chat()` with `stream: true`. */
import { setMaxListeners } from 'node:events'
import { answerCancelled } from '../../engine/events.ts'

type Pull<Item> = Promise<IteratorResult<Item, undefined>>

/**
 * The items of an answer, and its result. The answer begins at the first pull, or when `result` is read. It is
 * cancelled when the reader stops or the signal aborts, even during a pull.
 */
export class ChatStream<Item, Result> implements AsyncIterableIterator<Item, undefined> {
  readonly #items: AsyncGenerator<Item, Result>
  readonly #signal: AbortSignal | undefined
  readonly #controller = new AbortController()
  readonly #onAbort = (): void => this.#controller.abort(answerCancelled(this.#signal?.reason))
  /** Items that were pulled for `result`, and that the reader has not taken yet. */
  readonly #pulled: Pull<Item>[] = []
  readonly #result: Promise<Result>
  #resolve: (result: Result) => void = () => {}
  #reject: (cause: unknown) => void = () => {}
  #isDraining = false
  #hasStarted = false

  /** @param generate receives a signal that aborts when the answer is cancelled or has failed */
  constructor(generate: (signal: AbortSignal) => AsyncGenerator<Item, Result>, signal?: AbortSignal) {
    this.#result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#result.catch(() => {}) // Most readers of a stream ignore the result.
    setMaxListeners(0, this.#controller.signal)
    this.#items = generate(this.#controller.signal)
    this.#signal = signal
  }

  /**
   * The whole answer. Reading it generates the answer to its end, even if nothing iterates over the stream. Rejects with
   * an `AbortError` if the answer is cancelled, else with the error of the answer. The `cause` of an `AbortError` is the
   * reason of the signal, such as a `TimeoutError`.
   */
  get result(): Promise<Result> {
    if (!this.#isDraining) {
      this.#isDraining = true
      void this.#drain()
    }
    return this.#result
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Pulls the next item. Rejects with the error of the answer. Ends without an error when the signal aborts.
   */
  next(): Pull<Item> {
    return this.#pulled.shift() ?? this.#pull()
  }

  /** Cancels the answer. `result` then rejects with an `AbortError`. */
  async return(): Pull<Item> {
    // A generator alone would not stop before the pull that it waits for.
    this.#end()
    this.#reject(this.#controller.signal.reason)
    await this.#items.return(undefined as never)
    return { value: undefined, done: true }
  }

  async #pull(): Pull<Item> {
    this.#start()
    if (this.#controller.signal.aborted) this.#reject(this.#controller.signal.reason)
    else {
      try {
        const next = await this.#items.next()
        if (!next.done) return next
        this.#signal?.removeEventListener('abort', this.#onAbort)
        this.#resolve(next.value)
      } catch (cause) {
        const isCancelled = this.#controller.signal.aborted
        this.#end()
        this.#reject(isCancelled ? this.#controller.signal.reason : cause)
        if (!isCancelled) throw cause
      }
    }
    return { value: undefined, done: true }
  }

  async #drain(): Promise<void> {
    for (let isDone = false; !isDone; ) {
      const pull = this.#pull()
      this.#pulled.push(pull)
      isDone = await pull.then(
        ({ done }) => done === true,
        () => true,
      )
    }
  }

  /** Listens to the signal. A stream that is never read has no listener. */
  #start(): void {
    if (this.#hasStarted || !this.#signal) return
    this.#hasStarted = true
    // Any number of calls may share a signal. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, this.#signal)
    if (this.#signal.aborted) this.#onAbort()
    else this.#signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  #end(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#controller.abort(answerCancelled())
  }
}
