/** The local engine: each model runs in a separate process with node-llama-cpp. */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { availableParallelism } from 'node:os'
import { contextDenied, describeDeniedContext, LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import type { ModelStore } from '../../models/store.ts'
import { readAhead } from '../../util/read-ahead.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent, PromptUsage } from '../events.ts'
import { cacheLifetimes, type GenerateRequest, type LoadOptions } from '../request.ts'
import { lifetimesOf, measureTextLength } from '../request-input.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../tokens.ts'
import { weightsKeyOf } from './identity.ts'
import type { CallResult, CallType, VectorResult } from './ipc/messages.ts'
import {
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
  sumLengths,
} from './ipc/parse-request.ts'
import type { LoadConfig } from './ipc/process-config.ts'
import { countEventTokens } from './ipc/reader-lag.ts'
import { RuntimeDir } from './ipc/runtime-dir.ts'
import { decodeVector } from './ipc/vectors.ts'
import type { LoadedProcess, LoadedTask } from './local-model.ts'
import { CallCap } from './supervisor/call-cap.ts'
import { GrammarQuarantine } from './supervisor/grammar-quarantine.ts'
import { LoadedModels } from './supervisor/loaded-models.ts'

export interface LocalEngineOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  /** Upper bound for the `contextSize` of a call, in tokens. */
  readonly maxContextSize: number | undefined
  readonly parallel: number
  readonly maxLoadedModels: number
  /** How many calls of one cap may be in the engine at once, running and queued. */
  readonly maxCalls: number
  /** Total length of their prompts, in characters. */
  readonly maxPromptCharacters: number
  readonly gpuLayers: LoadConfig['gpuLayers']
  readonly flashAttention: boolean | undefined
  readonly kvCacheType: LoadConfig['kvCacheType']
  /** Size limit of the prompt cache, in bytes. */
  readonly promptCache: number | undefined
  /** How long an unused model stays loaded, in milliseconds. */
  readonly keepAlive: number | 'forever'
  /** How long a loaded model serves before a call may reload it with another context size, in milliseconds. */
  readonly reloadCooldown: number
  readonly modelProcessPath: string
  readonly runtimeDir: string | undefined
  /** Called when a model could not be loaded with all of its settings. */
  readonly warn?: (message: string) => void
  /** Called when a prompt diverges from a cached prompt. */
  readonly debug?: (details: object, message: string) => void
}

type ModelsOnDisk = Pick<ModelStore, 'get' | 'check' | 'details'>
type ReportConsumed = (tokens: number) => void

export class LocalEngine implements Engine {
  readonly #models: ModelsOnDisk
  readonly #loaded: LoadedModels
  readonly #callCap: CallCap
  /** Cap of the calls that only use the tokenizer, so that they cannot take the room of all others. */
  readonly #tokenizerCallCap: CallCap
  readonly #grammarQuarantine = new GrammarQuarantine()
  readonly #maxContextSize: number
  readonly #debug: NonNullable<LocalEngineOptions['debug']>

  constructor(models: ModelsOnDisk, options: LocalEngineOptions) {
    this.#models = models
    this.#debug = options.debug ?? (() => {})
    this.#callCap = new CallCap(options)
    this.#tokenizerCallCap = new CallCap(options)
    const { maxContextSize = Number.POSITIVE_INFINITY, contextSize = 4096 } = options
    this.#maxContextSize = maxContextSize
    const { gpuLayers, flashAttention, kvCacheType, promptCache, parallel } = options
    this.#loaded = new LoadedModels(
      {
        contextSize: Math.min(contextSize, maxContextSize),
        load: {
          threads: options.threads ?? Math.max(1, availableParallelism() - 1),
          tuneThreads: options.threads === undefined,
          parallel,
          gpuLayers,
          flashAttention,
          kvCacheType,
          ...(promptCache !== undefined && { promptCacheBytes: Math.floor(promptCache) }),
        },
        keepAlive: options.keepAlive,
        reloadCooldown: options.reloadCooldown,
        processFile: options.modelProcessPath,
        runtimeDir: new RuntimeDir(options.runtimeDir),
        check: (model) => models.check(model),
        isPooling: async (model) => (await models.details(model)).capabilities.includes('embedding'),
        warn: options.warn ?? (() => {}),
      },
      options.maxLoadedModels,
    )
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

  async countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    const checked = parseGenerateRequest(request)
    const toCount = (count: CallResult): number => count as number
    const { results } = await this.#request('count', checked, measureTextLength(checked), call, toCount)
    return results[0] ?? 0
  }

  async render(request: GenerateRequest, call: EngineCall): Promise<string> {
    const checked = parseGenerateRequest(request)
    const { results } = await this.#request('render', checked, measureTextLength(checked), call, toText)
    return results.join('')
  }

  async embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings> {
    const startedAt = performance.now()
    const checked = parseEmbedRequest(request)
    const size = sumLengths(checked.inputs)
    const { results, loadMs } = await this.#request('embed', checked, size, call, createVectorReceiver(call))
    return {
      embeddings: sortVectors(results),
      inputTokens: sumInputTokens(results),
      loadMs,
      totalMs: performance.now() - startedAt,
    }
  }

  async rerank(request: RerankRequest, call: EngineCall): Promise<Ranking> {
    const checked = parseRerankRequest(request)
    const size = sumLengths([checked.query, ...checked.documents])
    const { results } = await this.#request('rerank', checked, size, call, createVectorReceiver(call))
    return { scores: sortVectors(results).map(([score = 0]) => score), inputTokens: sumInputTokens(results) }
  }

  async tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]> {
    const checked = parseTokenizeRequest(request)
    const toIds = (ids: CallResult): readonly number[] => ids as readonly number[]
    const { results } = await this.#request('tokenize', checked, checked.text.length, call, toIds)
    return results.flat()
  }

  async detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string> {
    const checked = parseDetokenizeRequest(request)
    const { results } = await this.#request('detokenize', checked, checked.tokens.length, call, toText)
    return results.join('')
  }

  async load(model: string, load: LoadOptions, call: EngineCall): Promise<void> {
    const emptyRequest = parseGenerateRequest({ model, input: { kind: 'text', prompt: [] }, load })
    const task: EngineTask<true> = async ({ deniedContextSize }) => {
      if (deniedContextSize !== undefined) throw contextDenied(deniedContextSize)
      return true
    }
    if (!(await this.#withLoadedModel(emptyRequest, 0, call, task))) throw callCancelled()
  }

  async unload(model: string): Promise<void> {
    // A loaded model is found by its name, even when its file is gone.
    const named = this.#loaded.all().find(({ loaded }) => loaded?.name === model)
    const loaded = named ?? this.#loaded.get(weightsKeyOf(await this.#models.get(model)))
    await loaded?.unload()
  }

  loaded(): readonly LoadedModel[] {
    return this.#loaded.all().flatMap(({ loaded }) => loaded ?? [])
  }

  async close(): Promise<void> {
    this.#loaded.close()
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
    let hasBegun = false
    let endEvent: GenerateEvent | undefined
    const task: EngineTask<void> = async ({ loaded, loadMs, deniedContextSize }) => {
      const onEvent = (event: GenerateEvent): void => {
        hasBegun = true
        this.#observeEvent(event, checked, loaded)
        if (event.type === 'end') endEvent = { ...event, timings: { ...event.timings, loadMs } }
        else push(event)
      }
      const accepted = withoutTruncation(checked, deniedContextSize)
      await this.#generateInProcess(accepted, call, loaded, onEvent, onStart)
    }
    await this.#withLoadedModel(checked, measureTextLength(checked), call, task, () => hasBegun)
    // The `end` event is pushed after the call, so that the model is idle when the client reads the event.
    if (endEvent) push(endEvent)
  }

  async #generateInProcess(
    request: GenerateRequest,
    call: EngineCall,
    { process }: LoadedProcess,
    onEvent: (event: GenerateEvent) => void,
    onStart: (reportConsumed: ReportConsumed) => void,
  ): Promise<void> {
    try {
      await process.generate(request, { ...call, tenant: scopeTenant(call) }, onEvent, onStart)
    } catch (error) {
      if (process.hasCrashed || process.isStuck) await this.#grammarQuarantine.add(request)
      throw error
    }
  }

  #observeEvent(event: GenerateEvent, request: GenerateRequest, loaded: LoadedProcess): void {
    this.#loaded.failures.onEvent(loaded.fingerprint, event.type)
    if (event.type !== 'start') return
    extendCacheExpiry(loaded, request, event)
    this.#logDivergence(event)
  }

  /** Runs a call that streams no events. Its results arrive in one or more messages. */
  async #request<T>(
    type: Exclude<CallType, 'generate'>,
    request: LoadableRequest,
    size: number,
    call: EngineCall,
    parseResult: (result: CallResult) => T,
  ): Promise<{ readonly results: readonly T[]; readonly loadMs: number }> {
    const results: T[] = []
    const task: EngineTask<{ readonly loadMs: number }> = async ({ loaded, loadMs, deniedContextSize }) => {
      const { fingerprint, process } = loaded
      const accepted = withoutTruncation(request, deniedContextSize)
      await process.request(type, accepted, { ...call, tenant: scopeTenant(call) }, (result) => {
        if (type === 'embed' || type === 'rerank') this.#loaded.failures.onOutput(fingerprint)
        results.push(parseResult(result))
      })
      return { loadMs }
    }
    const cap = type === 'embed' || type === 'rerank' ? this.#callCap : this.#tokenizerCallCap
    const outcome = await this.#withLoadedModel(request, size, call, task, () => results.length > 0, cap)
    if (!outcome || call.signal.aborted) throw callCancelled()
    return { results, ...outcome }
  }

  /** Logs numbers only, never text of the prompt. */
  #logDivergence(event: Extract<GenerateEvent, { type: 'start' }>): void {
    const { model, divergence, inputTokens, reusedTokens } = event
    if (divergence)
      this.#debug(
        { model, inputTokens, reusedTokens, sharedTokens: divergence.tokens },
        'prompt diverges from the cached one',
      )
  }

  /** Runs the task when the model is loaded. Resolves with `undefined` if the signal aborts first. */
  async #withLoadedModel<T>(
    request: LoadableRequest,
    size: number,
    { model: resolvedModel, signal, tenant = '', requestedContextSize }: EngineCall,
    task: EngineTask<T>,
    hasBegun = (): boolean => false,
    cap = this.#callCap,
  ): Promise<T | undefined> {
    // Any number of calls may share a signal. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, signal)
    const { load = {} } = request
    const { contextSize = load.defaultContextSize ?? 0 } = load
    if (contextSize > this.#maxContextSize) throw contextTooLarge(contextSize, this.#maxContextSize)
    const model = resolvedModel ?? (await this.#models.get(request.model))
    const loadedTask: LoadedTask<T> = async (loaded, loadMs) => {
      if (requestedContextSize === undefined) return task({ loaded, loadMs })
      if (!(await this.#isContextDenied(model, requestedContextSize, loaded))) return task({ loaded, loadMs })
      return task({ loaded, loadMs, deniedContextSize: requestedContextSize }).catch((cause: unknown) => {
        throw nameDeniedContext(cause, requestedContextSize)
      })
    }
    return cap.run(tenant, size, () =>
      this.#loaded.use(weightsKeyOf(model), signal, (localModel) =>
        localModel.use(model, load, signal, loadedTask, hasBegun),
      ),
    )
  }

  /** Whether the loaded context is smaller than requested, although the model was trained for a larger one. */
  async #isContextDenied(model: Model, requested: number, { process }: LoadedProcess): Promise<boolean> {
    const { contextSize = Number.POSITIVE_INFINITY } = process.footprint ?? {}
    if (requested <= contextSize) return false
    // The file of a loaded model may be gone.
    const details = await this.#models.details(model).catch(() => undefined)
    return (details?.contextSize ?? Number.POSITIVE_INFINITY) > contextSize
  }
}

interface TaskInput {
  readonly loaded: LoadedProcess
  /** How long the call waited for the load. */
  readonly loadMs: number
  /** The context size that the caller asked for but may not choose. Set if the loaded context is smaller. */
  readonly deniedContextSize?: number
}

/** Runs on a loaded model. */
type EngineTask<T> = (input: TaskInput) => Promise<T>

/** A prompt that would fit the denied context must not lose its oldest messages silently. */
const withoutTruncation = <Request extends object>(
  request: Request,
  deniedContextSize: number | undefined,
): Request => (deniedContextSize === undefined ? request : { ...request, overflow: 'error' })

/** Keeps the model loaded at least until the breakpoints of this request expire. */
function extendCacheExpiry(loaded: LoadedProcess, { input }: GenerateRequest, prompt: PromptUsage): void {
  const { cacheReadTokens, cacheWriteTokens } = prompt
  if (cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h'] === 0) return
  const lifetime = lifetimesOf(input).includes('1h') ? '1h' : '5m'
  loaded.cachedUntil = Math.max(loaded.cachedUntil, Date.now() + cacheLifetimes[lifetime])
}

/** The fields that all requests share. */
interface LoadableRequest {
  readonly model: string
  readonly load?: LoadOptions
}

interface DecodedVector {
  readonly index: number
  readonly vector: readonly number[]
  readonly inputTokens: number
}

const toText = (text: CallResult): string => text as string

/** Returns a function that decodes a vector and reports the tokens of its text. */
const createVectorReceiver =
  ({ onInputTokens }: EngineCall) =>
  (result: CallResult): DecodedVector => {
    const { vector, ...fields } = result as VectorResult
    onInputTokens?.(fields.inputTokens)
    return { ...fields, vector: decodeVector(vector) }
  }

/** Sorts vectors by input. They arrive in order of completion. */
const sortVectors = (results: readonly DecodedVector[]): readonly (readonly number[])[] =>
  [...results].sort((a, b) => a.index - b.index).map(({ vector }) => vector)

const sumInputTokens = (results: readonly DecodedVector[]): number =>
  results.reduce((sum, { inputTokens }) => sum + inputTokens, 0)

const callCancelled = (): DOMException => new DOMException('The call was cancelled.', 'AbortError')

const contextTooLarge = (requested: number, max: number): LlmError =>
  new LlmError('invalid_request', `A context of ${requested} tokens exceeds the limit of ${max} tokens.`, {
    param: 'contextSize',
  })

/** Adds the denied context size to the error for a prompt that does not fit. */
function nameDeniedContext(cause: unknown, requestedContextSize: number): unknown {
  if (!LlmError.is(cause) || cause.code !== 'context_length') return cause
  const message = `${cause.message} ${describeDeniedContext('contextSize', requestedContextSize)}`
  return new LlmError('context_length', message, { ...cause.details, requestedContextSize })
}

/**
 * Adds an id of the app to the tenant, since apps share model processes but not cached prompts. All processes
 * that run the same script count as one app.
 */
const scopeTenant = ({ tenant = '' }: EngineCall): string => `${appId}/${tenant}`
const appId = createHash('sha256')
  .update(process.argv[1] ?? process.cwd())
  .digest('hex')
  .slice(0, 12)
