/**
 * The events of one answer. For speed, only one iterator is between the events of the engine and the
 * renderer.
 */
import type { CallStatus } from '../accounts/usage/ledger.ts'
import { sanitizeTokenCount, sanitizeUsage } from '../accounts/usage/sanitize-usage.ts'
import type { Engine } from '../engine/engine.ts'
import type { GenerateEvent, PromptUsage, TokenUsage } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import type { CallRun } from './call-run.ts'

/** A running answer, which can be iterated once. Ends without an error when the caller's signal aborts. */
export interface Generation extends AsyncIterable<GenerateEvent> {
  readonly id: string
  /** The model name from the request. */
  readonly model: string
  readonly createdAt: Date
  /** Usage of the prompt, from the `start` event. Absent if a stream has waited 5 s without that event. */
  readonly promptUsage?: PromptUsage
  /** Status of the limits when the call was admitted, for response headers. Empty if no limits apply. */
  readonly limits: readonly LimitStatus[]
}

/**
 * How long a stream waits for its first event before its headers are sent, in ms. Later failures arrive in
 * the stream.
 */
const openAfterMs = 5_000

/**
 * How many tokens of a metered answer the engine may generate before they are read. Unread tokens are never
 * charged.
 */
const readAheadTokens = 64

/** How long the end of an answer waits for the ledger, in ms. The ledger retries in the background. */
const settleTimeoutMs = 2_000

export interface GenerationSettings {
  readonly engine: Engine
  readonly run: CallRun
  /** Index of this answer among the answers of the call, from 0. */
  readonly part: number
  readonly request: GenerateRequest
  readonly signal: AbortSignal
}

/**
 * Runs the steps that may wait, calls the engine, and waits for the first event. A stream waits at most 5 s.
 * Rejects with any error that occurs before the wait ends.
 */
export async function openGeneration(settings: GenerationSettings, isStream: boolean): Promise<Generation> {
  const events = new GenerationEvents(settings)
  const first = await events.waitForFirst(isStream ? openAfterMs : undefined)
  const { call } = settings.run
  return {
    id: call.id,
    model: settings.request.model,
    createdAt: new Date(),
    limits: call.limits,
    ...(first?.type === 'start' && { promptUsage: first }),
    [Symbol.asyncIterator]: () => events,
  }
}

type RunningUsage = Omit<TokenUsage, 'outputTokens'> & { outputTokens: number }

type Step = IteratorResult<GenerateEvent, undefined>
const done: Step = { value: undefined, done: true }

class GenerationEvents implements AsyncIterator<GenerateEvent> {
  readonly #settings: GenerationSettings
  readonly #signal: AbortSignal
  #events: AsyncIterator<GenerateEvent> | undefined
  /** The first event. Undefined once the reader has taken it. */
  #first: Promise<Step> | undefined
  /** One object for all events, since an object per token costs as much as rendering the token. */
  #usage: RunningUsage | undefined
  #isOver = false

  constructor(settings: GenerationSettings) {
    this.#settings = settings
    this.#signal = settings.signal
    // A reader that never calls `next` does not call `return` either. Then only this listener ends the call.
    this.#signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#first = this.#start()
    this.#first.catch(() => {}) // `waitForFirst` and `next` report the error.
  }

  async waitForFirst(limitMs: number | undefined): Promise<GenerateEvent | undefined> {
    const first = this.#first as Promise<Step>
    if (limitMs === undefined) return (await first).value
    return (await withTimeout(first, limitMs))?.value
  }

  next(): Promise<Step> {
    const step = this.#first ?? this.#advance()
    this.#first = undefined
    return step
  }

  async return(): Promise<Step> {
    await this.#end('aborted')
    return done
  }

  async #start(): Promise<Step> {
    const { engine, run, request } = this.#settings
    const { call } = run
    try {
      const admission = run.admit()
      if (admission) {
        await admission
        if (this.#signal.aborted) return await this.#endEarly()
      }
      const maxTokens = run.maxTokensOf(request.maxTokens)
      const events = engine.generate(
        maxTokens === request.maxTokens
          ? request
          : { ...request, ...(maxTokens !== undefined && { maxTokens }) },
        {
          ...call.toEngineCall(this.#signal),
          ...(call.isMetered && { readAheadTokens }),
        },
      )
      this.#events = events[Symbol.asyncIterator]()
    } catch (cause) {
      return this.#fail(cause)
    }
    return this.#advance()
  }

  async #advance(): Promise<Step> {
    if (this.#isOver || !this.#events) return done
    const { run, part } = this.#settings
    try {
      const { value: event, done: hasEnded } = await this.#events.next()
      if (this.#signal.aborted) return await this.#endEarly()
      if (this.#isOver) return done
      if (hasEnded || run.call.isOver)
        throw new LlmError('upstream', 'The engine stopped before the answer was complete.')
      this.#countTokens(event)
      // Settles before the reader gets the `end` event, so the ledger already contains the call by then.
      if (event.type === 'end') await this.#end('ended')
      else if (this.#usage) run.onUsage(part, this.#usage)
      return { value: event, done: false }
    } catch (cause) {
      return this.#fail(cause)
    }
  }

  #countTokens(event: GenerateEvent): void {
    if (event.type === 'start') {
      const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens } = event
      this.#usage = sanitizeUsage({
        inputTokens,
        reusedTokens,
        cacheReadTokens,
        cacheWriteTokens,
        outputTokens: 0,
      })
    } else if (event.type === 'end') this.#usage = sanitizeUsage(event.usage)
    else if (this.#usage && 'tokens' in event && typeof event.tokens === 'number')
      this.#usage.outputTokens += sanitizeTokenCount(event.tokens)
  }

  /**
   * Ends the answer after an error. After an abort the error is dropped, since a cancelled call has not
   * failed.
   */
  async #fail(cause: unknown): Promise<Step> {
    if (cause === this.#settings.run.call.endReason) throw cause
    if (this.#signal.aborted) return this.#endEarly()
    await this.#end('failed')
    throw cause
  }

  /**
   * Ends without an error if the client has left. Throws `endReason` if the call was ended for another
   * reason.
   */
  async #endEarly(): Promise<Step> {
    const { endReason } = this.#settings.run.call
    const wasOver = this.#isOver
    await this.#end('aborted')
    if (endReason && !wasOver) throw endReason
    return done
  }

  readonly #onAbort = (): void => {
    // Before the engine is called, `#start` checks the signal instead.
    if (this.#events) void this.#closeEngine().then(() => this.#settle('aborted'))
  }

  async #end(status: CallStatus): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#onAbort)
    const closed = this.#closeEngine()
    await withTimeout(
      status === 'ended' ? this.#settle(status) : closed.then(() => this.#settle(status)),
      settleTimeoutMs,
    )
  }

  #settle(status: CallStatus): Promise<void> {
    const { run, part } = this.#settings
    return run.settle(part, this.#usage, status)
  }

  async #closeEngine(): Promise<void> {
    // The answer is over, so an error of the engine while it closes is ignored.
    await this.#events?.return?.().catch(() => {})
  }
}

/** Resolves with `undefined` after `limitMs`. */
async function withTimeout<T>(promise: Promise<T>, limitMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limitMs)
  })
  try {
    return await Promise.race([promise, limit])
  } finally {
    clearTimeout(timer)
  }
}
