/** Takes one call through the steps. The call may have several parts, such as the answers to several prompts. */
import type { CallStatus } from '../accounts/usage/ledger.ts'
import { addUsage, type TokenUsage } from '../engine/events.ts'
import type { Call, CallEnd } from './call.ts'
import { serverClosing } from './call.ts'
import type { CallStep } from './step.ts'

export class CallRun {
  readonly call: Call
  readonly #steps: readonly CallStep[]
  readonly #usageSteps: readonly CallStep[]
  readonly #partCount: number
  readonly #onOver: (run: CallRun) => void
  readonly #startedAt = performance.now()
  readonly #usages: (TokenUsage | undefined)[] = []
  readonly #endedParts = new Set<number>()
  readonly #clientSignal: AbortSignal
  #entered = 0
  #admission: Promise<void> | undefined
  #end: Promise<void> | undefined

  constructor(call: Call, steps: readonly CallStep[], partCount: number, onOver: (run: CallRun) => void) {
    this.call = call
    this.#steps = steps
    this.#usageSteps = steps.filter(({ onUsage }) => onUsage)
    this.#partCount = partCount
    this.#onOver = onOver
    this.#clientSignal = call.signal
    // A part that runs notices an abort itself; between two parts only the run does.
    if (partCount > 1) this.#clientSignal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Runs the steps that decide at once. Rejects with what rejects the call. Returns nothing where there are no steps. */
  enter(): Promise<void> | undefined {
    if (this.#steps.length === 0) return undefined
    const waiting = this.#steps.findIndex(({ mayWait }) => mayWait)
    return this.#runSteps(waiting < 0 ? this.#steps.length : waiting)
  }

  /** Runs the steps that may wait, once for all parts. Resolves also when the signal has aborted. Rejects with what rejects the call. */
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

  /** How many tokens the answer of a part may have. */
  maxTokensOf(requested: number | undefined): number | undefined {
    const { maxOutputTokens } = this.call
    if (!Number.isFinite(maxOutputTokens)) return requested
    return this.#partCount === 1
      ? maxOutputTokens
      : (requested ?? Math.floor(maxOutputTokens / this.#partCount))
  }

  onUsage(part: number, usage: TokenUsage): void {
    this.#usages[part] = usage
    if (this.call.isOver || this.#usageSteps.length === 0) return
    const sum = this.#usage ?? usage
    for (const step of this.#usageSteps) step.onUsage?.(this.call, sum)
  }

  /** Ends a part; the call ends with its last part, or with the first that fails or is aborted. Never rejects. */
  async settle(part: number, usage: TokenUsage | undefined, status: CallStatus): Promise<void> {
    if (this.#endedParts.has(part)) return this.#end
    this.#endedParts.add(part)
    if (usage) this.#usages[part] = usage
    if (status !== 'ended' || this.#endedParts.size === this.#partCount) await this.#finish(status)
  }

  /** The app closes: charges what was used up to now. */
  close(): Promise<void> {
    return this.#finish('aborted')
  }

  readonly #onAbort = (): void => void this.#finish('aborted')

  async #runSteps(until: number): Promise<void> {
    while (this.#entered < until) {
      const step = this.#steps[this.#entered] as CallStep
      // Nothing waits after an abort. The engine hears of an abort itself.
      if (step.mayWait && this.call.signal.aborted) return
      this.#entered++
      try {
        await step.before(this.call)
      } catch (cause) {
        await this.#finish(this.call.signal.aborted ? 'aborted' : 'failed')
        throw cause
      }
      if (this.call.isOver) {
        // `after` has run without what this step has taken meanwhile.
        await step.after?.(this.call, this.#callEnd('aborted'))
        throw serverClosing()
      }
    }
  }

  #finish(status: CallStatus): Promise<void> {
    this.#end ??= this.#runAfter(status)
    return this.#end
  }

  async #runAfter(status: CallStatus): Promise<void> {
    this.call.isOver = true
    this.#clientSignal.removeEventListener('abort', this.#onAbort)
    const end = this.#callEnd(status)
    const entered = this.#steps.slice(0, this.#entered).reverse()
    await Promise.all(entered.map((step) => step.after?.(this.call, end)))
    this.#onOver(this)
  }

  #callEnd(status: CallStatus): CallEnd {
    return { usage: this.#usage, status, durationMs: performance.now() - this.#startedAt }
  }

  get #usage(): TokenUsage | undefined {
    if (this.#partCount === 1) return this.#usages[0]
    return this.#usages.reduce(
      (sum, usage) => (sum && usage ? addUsage(sum, usage) : (sum ?? usage)),
      undefined,
    )
  }
}
