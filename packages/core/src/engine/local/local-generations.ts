/** Generates answers in model processes, and passes on their events. */
import { readAhead } from '../../util/read-ahead.ts'
import type { EngineCall } from '../engine.ts'
import type { GenerateEvent, PromptUsage } from '../events.ts'
import { cacheLifetimes, type GenerateRequest } from '../request.ts'
import { lifetimesOf, measureTextLength } from '../request-input.ts'
import { parseGenerateRequest } from '../wire/parse-request.ts'
import type { CountedInputs } from './counted-inputs.ts'
import { withoutTruncation } from './denied-context.ts'
import { countEventTokens } from './ipc/reader-lag.ts'
import type { LoadedProcess } from './loaded-process.ts'
import type { EngineTask, LocalCalls } from './local-calls.ts'
import type { Failures } from './supervisor/failures.ts'
import { GrammarQuarantine } from './supervisor/grammar-quarantine.ts'
import type { ProcessCall } from './supervisor/process-client.ts'

type ReportConsumed = (tokens: number) => void
type LogDebug = (details: object, message: string) => void

export class LocalGenerations {
  readonly #calls: LocalCalls
  readonly #failures: Failures
  readonly #counted: CountedInputs
  readonly #debug: LogDebug
  readonly #grammarQuarantine = new GrammarQuarantine()

  /** @param debug called when a prompt diverges from a cached prompt */
  constructor(calls: LocalCalls, failures: Failures, counted: CountedInputs, debug: LogDebug) {
    this.#calls = calls
    this.#failures = failures
    this.#counted = counted
    this.#debug = debug
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterableIterator<GenerateEvent> {
    let reportConsumed: ReportConsumed = () => {}
    return readAhead<GenerateEvent>(
      call.signal,
      (push, signal) =>
        this.#produceEvents(request, { ...call, signal }, push, (report) => {
          reportConsumed = report
        }),
      (event) => reportConsumed(countEventTokens(event)),
    )
  }

  /** @param onStart called with a function that reports consumed tokens to the model process */
  async #produceEvents(
    request: GenerateRequest,
    call: EngineCall,
    push: (event: GenerateEvent) => void,
    onStart: (reportConsumed: ReportConsumed) => void,
  ): Promise<void> {
    const checked = parseGenerateRequest(request)
    this.#grammarQuarantine.check(checked)
    const reportProgress = createProgressReporter(checked, call, push)
    let hasBegun = false
    let endEvent: GenerateEvent | undefined
    const task: EngineTask<void> = async ({ loaded, loadMs, call: scopedCall, deniedContextSize }) => {
      const onEvent = (event: GenerateEvent): void => {
        hasBegun = true
        if (event.type === 'progress') {
          const { type: _, ...progress } = event
          reportProgress?.(progress)
          return
        }
        this.#observeEvent(event, checked, call, loaded)
        if (event.type === 'end') endEvent = { ...event, timings: { ...event.timings, loadMs } }
        else push(event)
      }
      const accepted = withoutTruncation(
        reportProgress ? { ...checked, returnProgress: true as const } : checked,
        deniedContextSize,
      )
      const countedBy = this.#counted.take(request, loaded.process)
      await this.#generateInProcess(accepted, { ...scopedCall, countedBy }, loaded, onEvent, onStart)
    }
    const size = measureTextLength(checked)
    const watched = { ...call, onProgress: reportProgress }
    await this.#calls.run({ request: checked, call: watched, size, task, hasBegun: () => hasBegun })
    // The `end` event is pushed after the call, so that the model is idle when the client reads the event.
    if (endEvent) push(endEvent)
  }

  async #generateInProcess(
    request: GenerateRequest,
    call: ProcessCall,
    { process }: LoadedProcess,
    onEvent: (event: GenerateEvent) => void,
    onStart: (reportConsumed: ReportConsumed) => void,
  ): Promise<void> {
    try {
      await process.generate(request, call, onEvent, onStart)
    } catch (error) {
      if (process.hasCrashed || process.isStuck) await this.#grammarQuarantine.add(request)
      throw error
    }
  }

  #observeEvent(
    event: GenerateEvent,
    request: GenerateRequest,
    call: EngineCall,
    loaded: LoadedProcess,
  ): void {
    this.#failures.onEvent(loaded.fingerprint, event.type)
    if (event.type !== 'start') return
    extendCacheExpiry(loaded, request, event)
    this.#logDivergence(event, call)
  }

  /** Logs numbers only, never text of the prompt. */
  #logDivergence(event: Extract<GenerateEvent, { type: 'start' }>, { logFields }: EngineCall): void {
    const { model, divergence, inputTokens, reusedTokens } = event
    if (divergence)
      this.#debug(
        { ...logFields, model, inputTokens, reusedTokens, sharedTokens: divergence.tokens },
        'prompt diverges from the cached one',
      )
  }
}

/** Undefined if neither the reader of the answer nor another part of the app asks for progress. */
function createProgressReporter(
  { returnProgress }: GenerateRequest,
  { onProgress }: EngineCall,
  push: (event: GenerateEvent) => void,
): EngineCall['onProgress'] {
  if (!returnProgress) return onProgress
  return (progress) => {
    push({ ...progress, type: 'progress' })
    onProgress?.(progress)
  }
}

/** Keeps the model loaded at least until the breakpoints of this request expire. */
function extendCacheExpiry(loaded: LoadedProcess, { input }: GenerateRequest, prompt: PromptUsage): void {
  const { cacheReadTokens, cacheWriteTokens } = prompt
  if (cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h'] === 0) return
  const lifetime = lifetimesOf(input).includes('1h') ? '1h' : '5m'
  loaded.cachedUntil = Math.max(loaded.cachedUntil, Date.now() + cacheLifetimes[lifetime])
}
