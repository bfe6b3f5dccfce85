/** Closes an app: stops admitting, lets what was admitted end, and ends the rest at a deadline. */
import { setMaxListeners } from 'node:events'
import { LlmError } from '../errors.ts'
import { EarliestTimer } from '../util/earliest-timer.ts'
import { WatchedSet } from '../util/watched-set.ts'
import { withTimeout } from '../util/with-timeout.ts'
import { serverClosing } from './call.ts'
import type { CallPipeline } from './pipeline.ts'

export interface ShutdownParts {
  readonly pipeline: Pick<CallPipeline, 'stopAdmitting' | 'stop' | 'whenIdle'>
  /** Gives the running items of batches back. */
  readonly stopBatches: () => Promise<void>
  /**
   * Closes everything, and ends what still runs.
   *
   * @param reason the error of calls that a drain has not ended
   */
  readonly close: (reason?: LlmError) => Promise<void>
}

/** A request to a route, a call of `llm.chat()` or a transfer of a model. */
export interface OpenWork {
  /** Called at the deadline, with the error of the work. */
  readonly stop?: (reason: LlmError) => void
  /** Closes the connection of the client. */
  readonly disconnect?: () => void
}

/** How long clients may take to read what was generated until the deadline, and its error, in ms. */
const flushMs = 5_000

export class Shutdown {
  readonly #parts: ShutdownParts
  readonly #work = new WatchedSet<OpenWork>()
  readonly #admission = new EarliestTimer()
  readonly #deadline = new EarliestTimer()
  readonly #ended = new AbortController()
  #isAdmitting = true
  #closed: Promise<void> | undefined

  constructor(parts: ShutdownParts) {
    this.#parts = parts
    // Each transfer listens. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, this.#ended.signal)
  }

  /** Whether `close` was called. */
  get isClosing(): boolean {
    return this.#closed !== undefined
  }

  /** Aborts at the deadline, with the error for the client. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  /**
   * Counts the work until the returned function is called. Throws an `LlmError` `overloaded` if
   * the app admits nothing more.
   */
  admit(work: OpenWork): () => void {
    if (!this.#isAdmitting) throw serverClosing()
    this.#work.add(work)
    return () => void this.#work.delete(work)
  }

  /** Resolves when everything is closed. A second call can only move the times forward. */
  close({ admitMs, drainMs }: { readonly admitMs: number; readonly drainMs: number }): Promise<void> {
    this.#admission.set(admitMs)
    this.#deadline.set(admitMs + drainMs)
    this.#closed ??= this.#close(drainMs > 0)
    return this.#closed
  }

  async #close(isDrained: boolean): Promise<void> {
    const { pipeline, close } = this.#parts
    try {
      await this.#admission.expired
      this.#isAdmitting = false
      pipeline.stopAdmitting()
      const reason = isDrained ? endedByShutdown() : undefined
      if (reason) await this.#drain(reason)
      await close(reason)
    } finally {
      this.#admission.clear()
      this.#deadline.clear()
    }
  }

  async #drain(reason: LlmError): Promise<void> {
    const { pipeline, stopBatches } = this.#parts
    const idle = Promise.all([stopBatches(), this.#whenIdle()])
    await Promise.race([idle, this.#deadline.expired])
    pipeline.stop(reason)
    this.#ended.abort(reason)
    for (const { stop } of this.#work) stop?.(reason)
    await withTimeout(idle, flushMs)
    for (const { disconnect } of this.#work) disconnect?.()
  }

  async #whenIdle(): Promise<void> {
    const { pipeline } = this.#parts
    // A request may begin a call after another one.
    while (this.#work.size > 0) await this.#work.whenEmpty()
    await pipeline.whenIdle()
  }
}

const endedByShutdown = (): LlmError =>
  new LlmError('overloaded', 'The server closed before the answer was complete. Send the request again.', {
    retryAfterMs: 1_000,
  })
