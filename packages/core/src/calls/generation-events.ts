/**
 * The events of one answer. The engine generates them as fast as it can, and the reader takes them as fast as
 * it can. For speed, only one iterator is between the events of the engine and the renderer.
 */
import type { CallStatus } from '../accounts/usage/ledger.ts'
import type { Engine } from '../engine/engine.ts'
import type { GenerateEvent } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import { withTimeout } from '../util/with-timeout.ts'
import type { CallRun, PartEnd } from './call-run.ts'
import { AnswerUsage } from './output/answer-usage.ts'
import type { EventTransform } from './output/event-mapping.ts'
import type { OutputBudget } from './output/output-budget.ts'
import { type BufferedOutput, EngineFailure, OutputBuffer } from './output/output-buffer.ts'

/** How long the end of an answer waits for the ledger, in ms. The ledger retries in the background. */
const settleTimeoutMs = 2_000

export interface GenerationSettings {
  readonly engine: Engine
  readonly budget: OutputBudget
  readonly run: CallRun
  /** Index of this answer among the answers of the call, from 0. */
  readonly part: number
  readonly signal: AbortSignal
  /** Called when the engine has evaluated the prompt: at the first output. Not called for an answer without output. */
  readonly onEvaluated?: () => void
  /** Called when the engine has finished the answer, or when the answer has ended in another way. */
  readonly onGenerated?: () => void
}

type NextResult = IteratorResult<GenerateEvent, undefined>
const done: NextResult = { value: undefined, done: true }

/**
 * An event goes directly to the reader if it waits for one, and else into a buffer. The permit of the call is
 * released when the engine ends, and the usage is charged when the reader ends.
 */
export class GenerationEvents implements AsyncIterator<GenerateEvent> {
  readonly #settings: GenerationSettings
  readonly #usage = new AnswerUsage()
  #engineEvents: AsyncIterator<GenerateEvent> | undefined
  /** Maps the events for the reader. Undefined if no interceptor does. */
  #transform: EventTransform | undefined
  /** Created for the first event that the reader does not wait for. */
  #buffer: OutputBuffer | undefined
  /** Whether the last event or the error of the engine has come. */
  #isGenerated = false
  /** The first event. Undefined once the reader has asked for it. */
  #first: Promise<NextResult> | undefined
  /** The reader's request for the next event, while there is none. */
  #pending: Promise<NextResult> | undefined
  #resolvePending: ((result: NextResult | Promise<NextResult>) => void) | undefined
  /** Why the answer was ended from outside. The reader gets it once. */
  #endError: { readonly cause: unknown } | undefined
  /** Settles the answer. Set when the answer ends for the reader. */
  #end: Promise<unknown> | undefined

  constructor(settings: GenerationSettings) {
    this.#settings = settings
    // A reader that never calls `next` does not call `return` either. Then only this listener ends the call.
    settings.signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#first = this.#take()
    this.#first.catch(() => {}) // `waitForFirst` and `next` report the error.
    void this.#generate()
  }

  async waitForFirst(limitMs: number | undefined): Promise<GenerateEvent | undefined> {
    const first = this.#first as Promise<NextResult>
    if (limitMs === undefined) return (await first).value
    return (await withTimeout(first, limitMs))?.value
  }

  next(): Promise<NextResult> {
    const first = this.#first
    if (!first) return this.#take()
    this.#first = undefined
    this.#settings.run.reader.activeAtTick = this.#settings.budget.tick
    return first
  }

  async return(): Promise<NextResult> {
    await this.#close('aborted')
    return done
  }

  /** Runs the engine to its end, and pauses while the buffer is full. Never rejects. */
  async #generate(): Promise<void> {
    const { run, part, signal } = this.#settings
    try {
      const admission = run.admit()
      if (admission) {
        await admission
        if (signal.aborted) return this.#leave()
        run.call.throwIfOver()
      }
      run.startPart(part, (cause) => this.#onFailure(cause))
      this.#transform = run.call.createTransform?.(part)
      const events = this.#callEngine()
      while (!this.#isOver) {
        const { value: event, done: hasEnded } = await events.next()
        if (this.#isOver) return
        if (signal.aborted) return this.#leave()
        if (hasEnded || run.call.isOver) throw engineStopped()
        this.#onEvent(event)
        if (event.type === 'end') return
        if (this.#buffer?.isFull) await this.#buffer.whenRoom()
      }
    } catch (cause) {
      this.#onFailure(cause)
    }
  }

  /** Whether no more events of the engine are expected. */
  get #isOver(): boolean {
    return this.#isGenerated || this.#end !== undefined
  }

  #callEngine(): AsyncIterator<GenerateEvent> {
    const { engine, run, part, signal } = this.#settings
    const request = run.call.requests[part] as GenerateRequest
    const maxTokens = run.maxTokensOf(request.maxTokens)
    const engineCall = run.call.toEngineCall(signal)
    const events = engine.generate(
      maxTokens === request.maxTokens
        ? request
        : { ...request, ...(maxTokens !== undefined && { maxTokens }) },
      // Of several answers, the first one reports its progress.
      part === 0 ? engineCall : { ...engineCall, onProgress: undefined },
    )
    this.#engineEvents = events[Symbol.asyncIterator]()
    return this.#engineEvents
  }

  #onEvent(event: GenerateEvent): void {
    const { run, part, onEvaluated, onGenerated } = this.#settings
    // Interceptors and the meter need no progress.
    if (event.type === 'progress') {
      this.#emit(event)
      return
    }
    this.#usage.onGenerated(event)
    if (event.type !== 'start') onEvaluated?.()
    // Before the answer counts as generated, so that an error of an interceptor fails it.
    const mapped = this.#transform?.(event)
    const usage = this.#usage.current
    if (event.type === 'end') {
      this.#isGenerated = true
      void this.#closeEngine()
      run.onGenerated(part, usage)
      onGenerated?.()
    } else if (usage) run.onUsage(part, usage)
    if (mapped) for (const one of mapped) this.#emit(one)
    else this.#emit(event)
  }

  #onFailure(cause: unknown): void {
    const { run, part, signal } = this.#settings
    if (this.#isOver) return
    if (signal.aborted) this.#leave()
    else if (run.call.isOver) void this.#close('failed', { cause })
    else {
      this.#isGenerated = true
      void this.#closeEngine()
      run.onFailed(part, this.#usage.current, cause)
      this.#emit(new EngineFailure(cause))
    }
  }

  #emit(item: BufferedOutput): void {
    const resolve = this.#resolvePending
    if (resolve) {
      this.#pending = this.#resolvePending = undefined
      resolve(this.#deliver(item))
      return
    }
    const { budget, run } = this.#settings
    this.#buffer ??= new OutputBuffer(budget, run.reader, (error) => {
      // If another answer of the call has failed, its error says more.
      const { failure } = run
      void this.#close(failure ? 'failed' : 'aborted', failure ?? { cause: error })
      run.call.disconnect?.()
    })
    this.#buffer.push(item)
  }

  /** Resolves with the next event for the reader. Requests that overlap get their events in order. */
  #take(): Promise<NextResult> {
    if (this.#pending) {
      const takeNext = (): Promise<NextResult> => this.#take()
      return this.#pending.then(takeNext, takeNext)
    }
    const { run } = this.#settings
    if (run.call.isOver)
      void this.#close('failed', run.failure ?? { cause: run.call.endReason ?? engineStopped() })
    if (this.#end) return this.#deliverEnd()
    const item = this.#buffer?.take()
    if (item) return Promise.resolve(this.#deliver(item))
    this.#pending = new Promise((resolve) => {
      this.#resolvePending = resolve
    })
    return this.#pending
  }

  #deliver(item: BufferedOutput): NextResult | Promise<NextResult> {
    const { budget, run } = this.#settings
    // The first event is taken before the reader asks for it.
    if (!this.#first) run.reader.activeAtTick = budget.tick
    if (item.type === 'failure') return this.#deliverFailure(item)
    this.#usage.onTaken(item)
    if (item.type === 'end') return this.#deliverLast(item)
    const result: NextResult = { value: item, done: false }
    return run.onTaken()?.then(() => result) ?? result
  }

  /** Settles before the reader gets the event, so the ledger already contains the call by then. */
  async #deliverLast(event: Extract<GenerateEvent, { type: 'end' }>): Promise<NextResult> {
    const { finishReason, timings } = event
    await this.#finish({ status: 'ended', finishReason, timings })
    return { value: event, done: false }
  }

  async #deliverFailure({ cause }: EngineFailure): Promise<NextResult> {
    await this.#finish({ status: 'failed', cause })
    throw cause
  }

  async #deliverEnd(): Promise<NextResult> {
    const error = this.#endError
    this.#endError = undefined
    await this.#end
    if (error) throw error.cause
    return done
  }

  readonly #onAbort = (): void => {
    // Before the engine is called, `#generate` checks the signal instead.
    if (this.#engineEvents) this.#leave()
  }

  /** Ends without an error if the client has left, and with `endReason` if the call was ended otherwise. */
  #leave(): void {
    const { endReason } = this.#settings.run.call
    void this.#close('aborted', endReason && { cause: endReason })
  }

  /** Ends the answer before its last event, and drops what is buffered. Does nothing if it has ended. */
  #close(status: CallStatus, error?: { readonly cause: unknown }): Promise<unknown> {
    if (this.#end) return this.#end
    this.#endError = error
    const end = this.#finish({ status, cause: error?.cause })
    const resolve = this.#resolvePending
    this.#pending = this.#resolvePending = undefined
    resolve?.(this.#deliverEnd())
    return end
  }

  /** Resolves when the call is settled, but after 2 s at the latest. */
  #finish(end: Omit<PartEnd, 'usage'>): Promise<unknown> {
    this.#end ??= withTimeout(this.#settle(end), settleTimeoutMs)
    return this.#end
  }

  async #settle(end: Omit<PartEnd, 'usage'>): Promise<void> {
    const { run, part, signal, onGenerated } = this.#settings
    signal.removeEventListener('abort', this.#onAbort)
    this.#buffer?.close()
    // An engine may close only at its next event.
    if (end.status !== 'ended') await withTimeout(this.#closeEngine(), settleTimeoutMs)
    await run.settle(part, { ...end, usage: this.#usage.current })
    onGenerated?.()
  }

  async #closeEngine(): Promise<void> {
    try {
      await this.#engineEvents?.return?.()
    } catch {
      // The answer is over, so an error of the engine while it closes is ignored.
    }
  }
}

const engineStopped = (): LlmError =>
  new LlmError('upstream', 'The engine stopped before the answer was complete.')
