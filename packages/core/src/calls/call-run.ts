/** Runs the steps of one call. A call with several prompts has one part per answer. */
import { addUsage, type CallUsage, withoutPrompt } from '../accounts/usage/call-usage.ts'
import type { CallStatus } from '../accounts/usage/ledger.ts'
import type { FinishReason, Timings } from '../engine/events.ts'
import { LlmError } from '../errors.ts'
import type { Call, CallEnd } from './call.ts'
import type { CallReader } from './output/output-budget.ts'
import type { CallStep } from './step.ts'

/** How a part ended. */
export interface PartEnd {
  readonly usage: CallUsage | undefined
  readonly status: CallStatus
  /** Why the part failed, or was ended. */
  readonly cause?: unknown
  readonly finishReason?: FinishReason
  readonly timings?: Timings
}

export class CallRun {
  readonly call: Call
  /** The reader of all answers of the call. */
  readonly reader: CallReader
  readonly #steps: readonly CallStep[]
  readonly #partCount: number
  readonly #onOver: (run: CallRun) => void
  readonly #startedAt = performance.now()
  readonly #usages: (CallUsage | undefined)[]
  readonly #finishReasons: (FinishReason | undefined)[]
  readonly #timings: (Timings | undefined)[]
  readonly #hasEnded: boolean[]
  /** Number of parts that the engine has not finished. */
  #unfinished: number
  /** Callbacks that fail the parts that the engine generates, by index of the part. */
  readonly #generating = new Map<number, (cause: unknown) => void>()
  #failure: { readonly cause: unknown } | undefined
  #release: Promise<unknown> | undefined
  readonly #clientSignal: AbortSignal
  readonly #onAbort: (() => void) | undefined
  #entered = 0
  #admission: Promise<void> | undefined
  #end: Promise<void> | undefined

  constructor(call: Call, steps: readonly CallStep[], partCount: number, onOver: (run: CallRun) => void) {
    this.call = call
    this.reader = { tenant: call.tenant, unreadBytes: 0, activeAtTick: 0 }
    this.#steps = steps
    this.#partCount = partCount
    this.#unfinished = partCount
    this.#usages = new Array(partCount)
    this.#finishReasons = new Array(partCount).fill(undefined)
    this.#timings = new Array(partCount).fill(undefined)
    this.#hasEnded = new Array(partCount).fill(false)
    this.#onOver = onOver
    this.#clientSignal = call.signal
    // Each running part listens for the abort itself. With several parts, the listener below ends the call
    // while no part runs.
    if (partCount === 1) return
    this.#onAbort = () => void this.#finish('aborted')
    this.#clientSignal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /**
   * Runs all steps before the first step that may wait. Rejects with the error of a step. Returns `undefined`
   * if the pipeline has no steps.
   */
  enter(): Promise<void> | undefined {
    if (this.#steps.length === 0) return undefined
    const waiting = this.#steps.findIndex(({ mayWait }) => mayWait)
    return this.#runSteps(waiting < 0 ? this.#steps.length : waiting).catch((cause: unknown) => {
      this.call.release()
      throw cause
    })
  }

  /**
   * Runs the remaining steps, once for all parts. When the signal aborts, stops before the next step that may
   * wait, and resolves. Rejects with the error of a step.
   */
  admit(): Promise<void> | undefined {
    if (this.#entered === this.#steps.length && !this.#admission) {
      this.call.throwIfOver()
      this.call.hasStarted = true
      return undefined
    }
    this.#admission ??= this.#runSteps(this.#steps.length).then(() => {
      this.call.hasStarted = !this.call.signal.aborted || this.call.hasStarted
    })
    return this.#admission
  }

  /**
   * Returns the maximum output tokens of one part. A part without a requested maximum gets an equal share of
   * the call's maximum. A higher requested maximum is lowered to that of the call.
   */
  maxTokensOf(requested: number | undefined): number | undefined {
    const { maxOutputTokens } = this.call
    if (!Number.isFinite(maxOutputTokens)) return requested
    return Math.min(requested ?? Math.floor(maxOutputTokens / this.#partCount), maxOutputTokens)
  }

  /** Why the first part failed. */
  get failure(): { readonly cause: unknown } | undefined {
    return this.#failure
  }

  /**
   * Called before the engine generates a part. Throws the error of another part that has failed.
   *
   * @param onFailure called when another part fails. Must call `onFailed` for this part, too
   */
  startPart(part: number, onFailure: (cause: unknown) => void): void {
    if (this.#failure) throw this.#failure.cause
    this.#generating.set(part, onFailure)
  }

  /** @param usage may change until the part ends */
  onUsage(part: number, usage: CallUsage): void {
    this.#usages[part] = usage
    if (this.call.isOver) return
    const sum = this.#usage ?? usage
    for (const step of this.#steps) step.onUsage?.(this.call, sum)
  }

  /** The reader takes an event. Returns a promise if it must wait before it gets the event. */
  onTaken(): Promise<unknown> | undefined {
    const usage = this.#usage
    if (!usage || this.call.isOver) return undefined
    let wait: Promise<unknown> | undefined
    for (const step of this.#steps) wait = step.onTaken?.(this.call, usage) ?? wait
    return wait
  }

  /**
   * The engine has finished a part, whose reader may be slower. With the last part, the call stops using the
   * engine.
   */
  onGenerated(part: number, usage: CallUsage | undefined): void {
    if (usage) this.#usages[part] = usage
    this.#generating.delete(part)
    this.#unfinished--
    if (this.#unfinished === 0) this.#stopUsingEngine()
  }

  /**
   * The engine has failed to generate a part. The parts that it still generates fail, too, and no other part
   * starts.
   */
  onFailed(part: number, usage: CallUsage | undefined, cause: unknown): void {
    if (usage) this.#usages[part] = usage
    this.#generating.delete(part)
    if (this.#failure) return
    this.#failure = { cause }
    if (!this.#usage) this.call.markFailed(cause)
    const others = [...this.#generating.values()]
    this.#generating.clear()
    for (const fail of others) fail(cause)
    this.#stopUsingEngine()
  }

  /**
   * Ends a part. The call ends with its last part, or with the first part that fails or is aborted. Never
   * rejects.
   */
  async settle(part: number, { usage, status, cause, finishReason, timings }: PartEnd): Promise<void> {
    if (this.#hasEnded[part]) return this.#end
    this.#hasEnded[part] = true
    this.#generating.delete(part)
    if (usage) this.#usages[part] = usage
    this.#finishReasons[part] = finishReason
    this.#timings[part] = timings
    if (status !== 'ended' || this.#hasEnded.every(Boolean)) await this.#finish(status, cause)
    // Not before, because the engine may run longer than the call.
    if (this.#end) this.call.release()
  }

  /** Ends the call because the app closes, and charges its usage up to now. */
  close(): Promise<void> {
    return this.#finish('aborted')
  }

  /** Ends the call with an error, and charges its usage up to now. */
  end(reason: LlmError): Promise<void> {
    this.call.end(reason)
    return this.#finish('aborted')
  }

  /**
   * Stops an answer that the engine generates. The reader gets what was generated before, and then the error. Ends
   * a call at once if nothing was generated yet, or if it has one result.
   */
  stop(reason: LlmError): void {
    const [fail] = this.#generating.values()
    if (fail && this.#usage) fail(reason)
    else if (this.#unfinished > 0 && !this.#failure) void this.end(reason)
  }

  /** Ends the call as `stop` does, also if the engine has finished and only the reader is slow. */
  cancel(reason: LlmError): void {
    if (this.#unfinished > 0) this.stop(reason)
    else void this.end(reason)
  }

  async #runSteps(until: number): Promise<void> {
    while (this.#entered < until) {
      const step = this.#steps[this.#entered] as CallStep
      // After an abort there is no reason to wait. The code that calls the engine checks the signal.
      if (step.mayWait && this.call.signal.aborted) return
      this.#entered++
      try {
        await step.before(this.call)
      } catch (cause) {
        await this.#finish(this.call.signal.aborted ? 'aborted' : 'failed', cause)
        throw cause
      }
      if (this.call.isOver) {
        // The call ended while `before` ran. `after` ran too early to release what `before` has reserved
        // since.
        await step.after?.(this.call, this.#callEnd('aborted'))
        this.call.throwIfOver()
      }
    }
  }

  #stopUsingEngine(): void {
    if (this.#release || this.call.isOver) return
    const sum = this.#usage
    this.#release = Promise.all(this.#steps.map((step) => step.onGenerated?.(this.call, sum)))
  }

  #finish(status: CallStatus, cause?: unknown): Promise<void> {
    if (!this.#end && status === 'failed' && !this.#usage) this.call.markFailed(cause)
    this.#end ??= this.#runAfter(status, cause)
    return this.#end
  }

  async #runAfter(status: CallStatus, cause: unknown): Promise<void> {
    this.call.isOver = true
    if (this.#onAbort) this.#clientSignal.removeEventListener('abort', this.#onAbort)
    const end = this.#callEnd(status, cause)
    const entered = this.#steps.slice(0, this.#entered).reverse()
    await Promise.all([this.#release, ...entered.map((step) => step.after?.(this.call, end))])
    this.#onOver(this)
  }

  #callEnd(status: CallStatus, cause?: unknown): CallEnd {
    return {
      usage: this.#usage,
      status,
      error: toError(status, this.call.endReason ?? cause),
      finishReasons: this.call.kind === 'generate' ? [...this.#finishReasons] : [],
      timings: this.call.kind === 'generate' ? [...this.#timings] : [],
      durationMs: performance.now() - this.#startedAt,
    }
  }

  get #usage(): CallUsage | undefined {
    if (this.#partCount === 1) return this.#usages[0]
    const { answersPerPrompt } = this.call
    return this.#usages.reduce((sum, usage, part) => {
      if (!sum || !usage) return sum ?? usage
      return addUsage(sum, part % answersPerPrompt === 0 ? usage : withoutPrompt(usage))
    }, undefined)
  }
}

/** A client that leaves causes an `AbortError`, which is no failure. */
function toError(status: CallStatus, cause: unknown): LlmError | undefined {
  if (status === 'failed') return LlmError.from(cause)
  return status === 'aborted' && LlmError.is(cause) ? cause : undefined
}
