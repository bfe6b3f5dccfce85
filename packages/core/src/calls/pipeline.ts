/** Runs each call through the same list of steps, whether it comes from an HTTP API or from the app. */
import { setMaxListeners } from 'node:events'
import type { Access } from '../accounts/auth/access.ts'
import type { Keys } from '../accounts/keys/keys.ts'
import { type CallUsage, sanitizeTokenCount, sanitizeUsage } from '../accounts/usage/call-usage.ts'
import type { Ledger } from '../accounts/usage/ledger.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import { uncached } from '../engine/events.ts'
import type { LimitStatus, LlmError } from '../errors.ts'
import { WatchedSet } from '../util/watched-set.ts'
import { Call, type CallSettings, type ModelRequest, serverClosing } from './call.ts'
import { CallRun, type PartEnd } from './call-run.ts'
import { computePoolingWorstCase, computeWorstCase, countUncachedTokens } from './estimate.ts'
import { type Generation, openGeneration } from './generation.ts'
import { GenerationGroup } from './group.ts'
import type { ImageDownloads } from './images/image-downloads.ts'
import type { Interceptor } from './interceptor.ts'
import type { OutputBudget } from './output/output-budget.ts'
import type { CallStep } from './step.ts'
import { createDefaultsStep, type DefaultsOptions } from './steps/apply-defaults.ts'
import { createAuthoriseStep } from './steps/authorise.ts'
import { CreditStep } from './steps/credit.ts'
import { createDiagnosticsSteps } from './steps/diagnostics.ts'
import { createImageCheckStep, createImageDownloadStep } from './steps/images.ts'
import { InterceptorsStep } from './steps/interceptors.ts'
import { LimitsStep, type LimitsStepOptions } from './steps/limits.ts'
import { createOutputLimitStep } from './steps/output-limit.ts'
import type { QueueStep } from './steps/queue.ts'
import { modelStep } from './steps/resolve-model.ts'
import { createRevocationStep } from './steps/revocation.ts'

/** A result with the status of the limits when the call was admitted. */
export type WithLimitStatus<Result> = Result & { readonly limits: readonly LimitStatus[] }

/** What the steps use. */
export interface StepParts extends DefaultsOptions, LimitsStepOptions, Pick<Access, 'scopesOf'> {
  /** If undefined, a revocation does not end running answers. */
  readonly keys: Pick<Keys, 'onRevoked'> | undefined
  /** If undefined, all calls go to the engine at once. */
  readonly queue: QueueStep | undefined
  /** If undefined, spending is not counted. */
  readonly ledger: Ledger | undefined
  readonly interceptors: readonly Interceptor[]
  readonly engine: Engine
  readonly imageDownloads: ImageDownloads
  /** Returns the object of `createLlm()` that the calls belong to, for the events of the diagnostics channels. */
  readonly llmOf: () => object
}

/** The steps of each call. Their `before` runs in this order, and their `after` in the reverse order. */
export function createSteps(given: StepParts): readonly CallStep[] {
  const { keys, queue, ledger, scopesOf, interceptors, engine, imageDownloads, llmOf, ...parts } = given
  const diagnostics = createDiagnosticsSteps(llmOf)
  const authorise = createAuthoriseStep({ scopesOf, hasLedger: ledger !== undefined })
  const isIntercepted = interceptors.length > 0
  return [
    diagnostics.first,
    modelStep,
    authorise,
    ...(keys ? [createRevocationStep(keys)] : []),
    ...(isIntercepted
      ? [
          new LimitsStep(parts, 'before-interceptors'),
          new InterceptorsStep(interceptors, { authorise, resolveModel: modelStep, onError: parts.onError }),
        ]
      : []),
    createDefaultsStep(parts),
    createImageCheckStep(engine, imageDownloads),
    createOutputLimitStep(parts.subjects),
    new LimitsStep(parts, isIntercepted ? 'after-interceptors' : 'all'),
    ...(queue ? [queue] : []),
    createImageDownloadStep(imageDownloads),
    ...(ledger ? [new CreditStep(ledger)] : []),
    diagnostics.last,
  ]
}

export class CallPipeline {
  readonly #engine: Engine
  readonly #steps: readonly CallStep[]
  readonly #budget: OutputBudget
  /** Running calls. */
  readonly #runs = new WatchedSet<CallRun>()
  /** Whether the app may begin calls. Calls of admitted work begin until the pipeline is closed. */
  #isAdmitting = true
  #isClosed = false

  constructor(engine: Engine, steps: readonly CallStep[], budget: OutputBudget) {
    this.#engine = engine
    this.#steps = steps
    this.#budget = budget
  }

  /**
   * Resolves when the answer begins. Rejects if the call fails earlier, when an HTTP status can still be
   * sent.
   */
  async generate(settings: CallSettings, isStream: boolean): Promise<Generation> {
    const run = this.#openGenerationRun(settings, isStream)
    const { call } = run
    const entry = run.enter()
    // Without steps, the engine is called in the same tick. Even an abort right after `generate` then reaches
    // the engine.
    if (entry) await entry
    return openGeneration(
      { engine: this.#engine, budget: this.#budget, run, part: 0, signal: call.signal },
      isStream,
    )
  }

  /** Opens one call with several answers, which is admitted and charged once. */
  async generateGroup(settings: CallSettings, isStream: boolean): Promise<GenerationGroup> {
    const run = this.#openGenerationRun(settings, isStream)
    await run.enter()
    return new GenerationGroup({ engine: this.#engine, budget: this.#budget, run }, isStream)
  }

  /** Runs a call that returns one result. Rejects with an `AbortError` when its signal aborts. */
  async run<Request extends ModelRequest, Result>(
    settings: CallSettings & { readonly requests: readonly Request[] },
    work: (request: Request, call: EngineCall) => Promise<Result>,
  ): Promise<WithLimitStatus<Result>> {
    const run = this.#open(settings, 1)
    const { call } = run
    let usage: CallUsage | undefined
    const onInputTokens = (tokens: number): void => {
      usage = toInputUsage((usage?.inputTokens ?? 0) + sanitizeTokenCount(tokens))
      run.onUsage(0, usage)
    }
    // Read late, because interceptors may change it.
    const request = (): Request => call.requests[0] as Request
    let end: Omit<PartEnd, 'usage'> = { status: 'failed' }
    try {
      await run.enter()
      call.computeWorstCase = async () => computePoolingWorstCase(request())
      await run.admit()
      call.signal.throwIfAborted()
      const result = await work(request(), { ...call.toEngineCall(), onInputTokens })
      usage = usageOf(result)
      end = { status: 'ended' }
      return { ...result, limits: call.limits }
    } catch (cause) {
      end = { status: call.signal.aborted ? 'aborted' : 'failed', cause }
      throw call.endReason ?? cause
    } finally {
      await run.settle(0, { ...end, usage })
    }
  }

  /** From now on, calls of the app get the `LlmError` `overloaded`, except for those of admitted work. */
  stopAdmitting(): void {
    this.#isAdmitting = false
  }

  /** Resolves when no call runs, and the usage of all calls is charged. */
  whenIdle(): Promise<void> {
    return this.#runs.whenEmpty()
  }

  /** Ends running calls with an error. Their readers first get what was generated until now. */
  stop(reason: LlmError): void {
    for (const run of this.#runs) run.stop(reason)
  }

  /**
   * Ends running calls and charges their usage. Later calls get the `LlmError` `overloaded`.
   *
   * @param reason what readers get @default the error of an engine that stops
   */
  async close(reason?: LlmError): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#runs].map((run) => (reason ? run.end(reason) : run.close())))
    this.#budget.close()
  }

  /**
   * Cancels a running call. The reader of an answer gets what was generated before, and then the error. Returns false if
   * the call does not run.
   */
  cancelCall(id: string, reason: LlmError): boolean {
    const run = [...this.#runs].find(({ call }) => call.id === id)
    run?.cancel(reason)
    return run !== undefined
  }

  /** Ends the running calls of a tenant, charges their usage, and returns their number. */
  async endTenant(tenant: string, reason: LlmError): Promise<number> {
    const runs = [...this.#runs].filter(({ call }) => call.tenant === tenant && call.requests.length > 0)
    await Promise.all(runs.map((run) => run.end(reason)))
    return runs.length
  }

  #openGenerationRun(settings: CallSettings, isStream: boolean): CallRun {
    const run = this.#open(settings, settings.requests.length)
    const { call } = run
    // The app itself may do anything with an event that it takes.
    call.isStream = isStream
    call.isPassedOn = isStream || call.dialect === undefined
    call.computeWorstCase = () => computeWorstCase(this.#engine, call, call.toEngineCall())
    call.countUncachedTokens = () => countUncachedTokens(this.#engine, call, call.toEngineCall())
    return run
  }

  #open(settings: CallSettings, partCount: number): CallRun {
    if (this.#isClosed || !(this.#isAdmitting || settings.isAdmitted)) throw serverClosing()
    // Any number of calls may share a signal. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, settings.signal)
    const run = new CallRun(new Call(settings), this.#steps, partCount, (over) => this.#runs.delete(over))
    this.#runs.add(run)
    return run
  }
}

/** Usage that an embedding or ranking result reports. Undefined for other results. */
function usageOf(result: unknown): CallUsage | undefined {
  const { inputTokens } = Object(result) as { readonly inputTokens?: unknown }
  if (typeof inputTokens !== 'number') return undefined
  return toInputUsage(inputTokens)
}

const toInputUsage = (inputTokens: number): CallUsage =>
  sanitizeUsage({ ...uncached, inputTokens, reusedTokens: 0, outputTokens: 0 })
