/** The engine on this machine: models in processes of their own, over node-llama-cpp. */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { availableParallelism } from 'node:os'
import { LlmError } from '../../errors.ts'
import type { ModelStore } from '../../models/store.ts'
import { readAhead } from '../../util/read-ahead.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent, PromptUsage } from '../events.ts'
import {
  cacheLifetimes,
  type GenerateRequest,
  type LoadOptions,
  lifetimesOf,
  measureTextLength,
} from '../request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../tokens.ts'
import { weightsKeyOf } from './identity.ts'
import {
  type CallResult,
  type CallType,
  decodeVector,
  type LoadConfig,
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
  sumLengths,
  type VectorResult,
} from './ipc/protocol.ts'
import { countEventTokens } from './ipc/reader-lag.ts'
import { RuntimeDir } from './ipc/runtime-dir.ts'
import type { LoadedProcess, LoadedTask } from './local-model.ts'
import { CallCap } from './supervisor/call-cap.ts'
import { GrammarQuarantine } from './supervisor/grammar-quarantine.ts'
import { LoadedModels } from './supervisor/loaded-models.ts'

export interface LocalEngineOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  /** The most that a call may ask for, in tokens. */
  readonly maxContextSize: number | undefined
  readonly parallel: number | undefined
  readonly maxLoadedModels: number
  readonly gpuLayers: LoadConfig['gpuLayers']
  readonly flashAttention: boolean | undefined
  readonly kvCacheType: LoadConfig['kvCacheType']
  /** In bytes. */
  readonly promptCache: number | undefined
  /** In milliseconds. */
  readonly keepAlive: number | 'forever'
  readonly modelProcessPath: string
  readonly runtimeDir: string | undefined
  /** Hears what about a loaded model is not as it was wanted. */
  readonly warn?: (message: string) => void
  /** Hears where prompts go another way than those before. */
  readonly debug?: (details: object, message: string) => void
}

type ModelsOnDisk = Pick<ModelStore, 'get' | 'check' | 'details'>

export class LocalEngine implements Engine {
  readonly #models: ModelsOnDisk
  readonly #loaded: LoadedModels
  readonly #callCap = new CallCap()
  readonly #grammarQuarantine = new GrammarQuarantine()
  readonly #maxContextSize: number
  readonly #debug: NonNullable<LocalEngineOptions['debug']>

  constructor(models: ModelsOnDisk, options: LocalEngineOptions) {
    this.#models = models
    this.#debug = options.debug ?? (() => {})
    const { maxContextSize = Number.POSITIVE_INFINITY, contextSize = 4096 } = options
    this.#maxContextSize = maxContextSize
    const { gpuLayers, flashAttention, kvCacheType, promptCache, parallel = 4 } = options
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
    let reportConsumed: ((tokens: number) => void) | undefined
    const onConsume = (event: GenerateEvent): void => reportConsumed?.(countEventTokens(event))
    const produce = async (push: (event: GenerateEvent) => void, signal: AbortSignal): Promise<void> => {
      let hasBegun = false
      let endEvent: GenerateEvent | undefined
      const checked = parseGenerateRequest(request)
      this.#grammarQuarantine.check(checked)
      await this.#withLoadedModel(
        checked,
        measureTextLength(checked),
        signal,
        async (loaded, loadMs) => {
          const { fingerprint, process } = loaded
          try {
            const engineCall = { ...call, tenant: scopeTenant(call), signal }
            const onEvent = (event: GenerateEvent): void => {
              hasBegun = true
              if (event.type === 'text') this.#loaded.failures.onText(fingerprint)
              if (event.type === 'start') {
                extendCacheExpiry(loaded, checked, event)
                this.#logDivergence(event)
              }
              if (event.type === 'end') endEvent = { ...event, timings: { ...event.timings, loadMs } }
              else push(event)
            }
            await process.generate(checked, engineCall, onEvent, (report) => {
              reportConsumed = report
            })
          } catch (error) {
            if (process.hasCrashed || process.isStuck) this.#grammarQuarantine.add(checked)
            throw error
          }
        },
        () => hasBegun,
      )
      // Behind the call: who has heard the end finds the model at rest.
      if (endEvent) push(endEvent)
    }
    return readAhead(call.signal, produce, onConsume)
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
    const { results, loadMs } = await this.#request(
      'embed',
      checked,
      sumLengths(checked.inputs),
      call,
      toDecodedVector,
    )
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
    const { results } = await this.#request('rerank', checked, size, call, toDecodedVector)
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

  async load(model: string, load: LoadOptions, { signal }: EngineCall): Promise<void> {
    const emptyRequest = parseGenerateRequest({ model, input: { kind: 'text', prompt: [] }, load })
    if (!(await this.#withLoadedModel(emptyRequest, 0, signal, async () => true))) throw callCancelled()
  }

  async unload(model: string): Promise<void> {
    // By the name that it is loaded under it is let go even when its file is gone.
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

  /** What comes of it, piece by piece. */
  async #request<T>(
    type: Exclude<CallType, 'generate'>,
    request: EngineRequest,
    size: number,
    call: EngineCall,
    parseResult: (result: CallResult) => T,
  ): Promise<{ readonly results: readonly T[]; readonly loadMs: number }> {
    const { signal } = call
    const results: T[] = []
    const task: LoadedTask<{ readonly loadMs: number }> = async ({ fingerprint, process }, loadMs) => {
      await process.request(type, request, { ...call, tenant: scopeTenant(call) }, (result) => {
        if (type === 'embed' || type === 'rerank') this.#loaded.failures.onText(fingerprint)
        results.push(parseResult(result))
      })
      return { loadMs }
    }
    const outcome = await this.#withLoadedModel(request, size, signal, task, () => results.length > 0)
    if (!outcome || signal.aborted) throw callCancelled()
    return { results, ...outcome }
  }

  /** Of the prompt nothing is logged but numbers. */
  #logDivergence({
    model,
    divergence,
    inputTokens,
    reusedTokens,
  }: Extract<GenerateEvent, { type: 'start' }>): void {
    if (divergence)
      this.#debug(
        { model, inputTokens, reusedTokens, sharedTokens: divergence.tokens },
        'A prompt goes another way than the one before: what is behind that is read again.',
      )
  }

  /** Waits for a place, its turn, and the model. Nothing when the caller has left. */
  async #withLoadedModel<T>(
    request: EngineRequest,
    size: number,
    signal: AbortSignal,
    task: LoadedTask<T>,
    hasBegun = (): boolean => false,
  ): Promise<T | undefined> {
    // A signal may be shared by any number of calls, which is no leak and no reason for a warning.
    setMaxListeners(0, signal)
    const { load = {} } = request
    if (load.contextSize && load.contextSize > this.#maxContextSize)
      throw contextTooLarge(load.contextSize, this.#maxContextSize)
    const model = await this.#models.get(request.model)
    return this.#callCap.run(size, () =>
      this.#loaded.use(weightsKeyOf(model), signal, (localModel) =>
        localModel.use(model, load, signal, task, hasBegun),
      ),
    )
  }
}

/** A model stays loaded while it keeps something for the next call. */
function extendCacheExpiry(loaded: LoadedProcess, { input }: GenerateRequest, prompt: PromptUsage): void {
  const { cacheReadTokens, cacheWriteTokens } = prompt
  if (cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h'] === 0) return
  const lifetime = lifetimesOf(input).includes('1h') ? '1h' : '5m'
  loaded.cachedUntil = Math.max(loaded.cachedUntil, Date.now() + cacheLifetimes[lifetime])
}

/** Of every request. */
interface EngineRequest {
  readonly model: string
  readonly load?: LoadOptions
}

interface DecodedVector {
  readonly index: number
  readonly vector: readonly number[]
  readonly inputTokens: number
}

const toText = (text: CallResult): string => text as string

const toDecodedVector = (result: CallResult): DecodedVector => {
  const { vector, ...fields } = result as VectorResult
  return { ...fields, vector: decodeVector(vector) }
}

/** They come as they are ready. */
const sortVectors = (results: readonly DecodedVector[]): readonly (readonly number[])[] =>
  [...results].sort((a, b) => a.index - b.index).map(({ vector }) => vector)

const sumInputTokens = (results: readonly DecodedVector[]): number =>
  results.reduce((sum, { inputTokens }) => sum + inputTokens, 0)

const callCancelled = (): DOMException => new DOMException('The call was cancelled.', 'AbortError')

const contextTooLarge = (requested: number, max: number): LlmError =>
  new LlmError(
    'invalid_request',
    `A context of ${requested} tokens is more than the ${max} that may be asked for here.`,
    { param: 'contextSize' },
  )

/** Apps share model processes, but not what was read for their callers; the workers of one app do. */
const scopeTenant = ({ tenant = '' }: EngineCall): string => `${appId}/${tenant}`
const appId = createHash('sha256')
  .update(process.argv[1] ?? process.cwd())
  .digest('hex')
  .slice(0, 12)
