/** The local engine: each model runs in a separate process with node-llama-cpp. */
import { contextDenied } from '../../errors.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import type { FindModelSettings, ModelSettings } from '../model-settings.ts'
import type { GenerateRequest, LoadOptions } from '../request.ts'
import { measureTextLength } from '../request-input.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../tokens.ts'
import {
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
  sumLengths,
} from '../wire/parse-request.ts'
import { CountedInputs } from './counted-inputs.ts'
import { withoutTruncation } from './denied-context.ts'
import { weightsKeyOf } from './identity.ts'
import { availableCores } from './ipc/available-cores.ts'
import { readCardSelection } from './ipc/card-selection.ts'
import { readLibraryVersion } from './ipc/library-version.ts'
import type { CallResult, CallType } from './ipc/messages.ts'
import { findEngineProblem } from './ipc/missing-engine.ts'
import type { LoadConfig } from './ipc/process-config.ts'
import { RuntimeDir } from './ipc/runtime-dir.ts'
import type { LocalModelSettings } from './load-settings.ts'
import {
  type EngineTask,
  type LoadableRequest,
  LocalCalls,
  type ModelsOnDisk,
  scopeTenant,
} from './local-calls.ts'
import { LocalGenerations } from './local-generations.ts'
import { LocalHealth } from './local-health.ts'
import type { ModelEvent } from './model-events.ts'
import { LoadedModels } from './supervisor/loaded-models.ts'
import type { ProcessClient } from './supervisor/process-client.ts'
import { createVectorReceiver, sortVectors, sumInputTokens } from './vector-results.ts'

export interface LocalEngineOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  /** Upper bound for the `contextSize` of a call, in tokens. */
  readonly maxContextSize: number | undefined
  /** Settings of single models, which come before those for all models. @default none */
  readonly settingsOf?: FindModelSettings
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
  /** How long a loaded model serves before a call may reload or evict it, in milliseconds. */
  readonly reloadCooldown: number
  readonly modelProcessPath: string
  /** Names of further environment variables that model processes inherit. */
  readonly environment: readonly string[]
  readonly runtimeDir: string | undefined
  /** Whether the app has no models but those of this engine, so that it cannot do without it. @default true */
  readonly isOnlyEngine?: boolean
  /** Called when a model could not be loaded with all of its settings. */
  readonly warn?: (message: string, model: string) => void
  /** Called when a model is loaded, and when its process is released or ends. */
  readonly onModelEvent?: (event: ModelEvent) => void
  /** Called when a prompt diverges from a cached prompt. */
  readonly debug?: (details: object, message: string) => void
}

interface RequestOutcome {
  readonly loadMs: number
  /** The process that ran the call, and the id of the call in this process. */
  readonly process: ProcessClient
  readonly callId: number
}

export class LocalEngine implements Engine {
  readonly health: LocalHealth
  /** Why no model can run on this machine, as far as that is known at start. Names the way out. */
  readonly machineProblem: string | undefined
  readonly #models: ModelsOnDisk
  readonly #loaded: LoadedModels
  readonly #calls: LocalCalls
  readonly #counted = new CountedInputs()
  readonly #generations: LocalGenerations

  constructor(models: ModelsOnDisk, options: LocalEngineOptions) {
    const { maxContextSize = Number.POSITIVE_INFINITY, debug = () => {} } = options
    const { onModelEvent = () => {}, isOnlyEngine = true } = options
    this.#models = models
    this.machineProblem = findEngineProblem(options.modelProcessPath)
    const settings = resolveSettings(models, options, maxContextSize, (event) => {
      this.health.onModelEvent(event)
      onModelEvent(event)
    })
    this.#loaded = new LoadedModels(settings, options.maxLoadedModels)
    this.#calls = new LocalCalls(models, this.#loaded, { ...options, maxContextSize })
    const isFull = (): boolean => this.#calls.isFull
    this.health = new LocalHealth(this.#loaded, settings, isFull, this.machineProblem, isOnlyEngine)
    this.#generations = new LocalGenerations(this.#calls, this.#loaded.failures, this.#counted, debug)
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterableIterator<GenerateEvent> {
    return this.#generations.generate(request, call)
  }

  async countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    const checked = parseGenerateRequest(request)
    const toCount = (count: CallResult): number => count as number
    const size = measureTextLength(checked)
    const { results, process, callId } = await this.#request('count', checked, size, call, toCount)
    this.#counted.add(request, process, callId)
    return results[0] ?? 0
  }

  async countCachedTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    const checked = parseGenerateRequest(request)
    const toCount = (count: CallResult): number => count as number
    const { results } = await this.#request(
      'count-cached',
      checked,
      measureTextLength(checked),
      call,
      toCount,
    )
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

  async tokenPieces(request: DetokenizeRequest, call: EngineCall): Promise<readonly TokenPiece[]> {
    const checked = parseDetokenizeRequest(request)
    const toPieces = (pieces: CallResult): readonly TokenPiece[] => pieces as readonly TokenPiece[]
    const { results } = await this.#request('pieces', checked, checked.tokens.length, call, toPieces)
    return results.flat()
  }

  async load(model: string, load: LoadOptions, call: EngineCall): Promise<void> {
    const emptyRequest = parseGenerateRequest({ model, input: { kind: 'text', prompt: [] }, load })
    const task: EngineTask<true> = async ({ deniedContextSize }) => {
      if (deniedContextSize !== undefined) throw contextDenied(deniedContextSize)
      return true
    }
    if (!(await this.#calls.run({ request: emptyRequest, call, size: 0, task }))) throw callCancelled()
  }

  async unload(model: string): Promise<void> {
    // A loaded model is found by its name, even when its file is gone.
    const named = this.#loaded.all().find(({ loaded }) => loaded?.name === model)
    const loaded = named ?? this.#loaded.get(weightsKeyOf(await this.#models.get(model)))
    await loaded?.unload()
  }

  async deletePromptStates(tenant: string): Promise<number> {
    const counts = this.#loaded.all().map((model) => model.deletePromptStates(scopeTenant(tenant)))
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  details(model: Model): Promise<ModelDetails> {
    return this.#models.details(model)
  }

  loaded(): readonly LoadedModel[] {
    return this.#loaded.all().flatMap(({ loaded }) => loaded ?? [])
  }

  async close(): Promise<void> {
    this.#loaded.close()
  }

  /** Runs a call that streams no events. Its results arrive in one or more messages. */
  async #request<T>(
    type: Exclude<CallType, 'generate' | 'forget'>,
    request: LoadableRequest,
    size: number,
    call: EngineCall,
    parseResult: (result: CallResult) => T,
  ): Promise<RequestOutcome & { readonly results: readonly T[] }> {
    const results: T[] = []
    const isTokenizerOnly = type !== 'embed' && type !== 'rerank'
    const task: EngineTask<RequestOutcome> = async (input) => {
      const { fingerprint, process } = input.loaded
      const accepted = withoutTruncation(request, input.deniedContextSize)
      const callId = await process.request(type, accepted, input.call, (result) => {
        if (!isTokenizerOnly) this.#loaded.failures.onOutput(fingerprint)
        results.push(parseResult(result))
      })
      return { loadMs: input.loadMs, process, callId }
    }
    const hasBegun = (): boolean => results.length > 0
    const outcome = await this.#calls.run({ request, call, size, task, hasBegun, isTokenizerOnly })
    if (!outcome || call.signal.aborted) throw callCancelled()
    return { results, ...outcome }
  }
}

function resolveSettings(
  models: ModelsOnDisk,
  options: LocalEngineOptions,
  maxContextSize: number,
  onModelEvent: LocalModelSettings['onModelEvent'],
): LocalModelSettings {
  const { contextSize = 4096, gpuLayers, flashAttention, kvCacheType, promptCache, parallel } = options
  return {
    contextSize: Math.min(contextSize, maxContextSize),
    isContextSizeChosen: options.contextSize !== undefined,
    load: {
      libraryVersion: readLibraryVersion(options.modelProcessPath),
      // Model processes inherit these variables.
      cards: readCardSelection(process.env),
      threads: options.threads ?? Math.max(1, availableCores() - 1),
      tuneThreads: options.threads === undefined,
      parallel,
      gpuLayers,
      flashAttention,
      kvCacheType,
      ...(promptCache !== undefined && { promptCacheBytes: Math.floor(promptCache) }),
    },
    settingsOf: options.settingsOf ?? (() => noSettings),
    keepAlive: options.keepAlive,
    reloadCooldown: options.reloadCooldown,
    processFile: options.modelProcessPath,
    environment: options.environment,
    runtimeDir: new RuntimeDir(options.runtimeDir),
    check: (model) => models.check(model),
    isPooling: async (model) => (await models.details(model)).capabilities.includes('embedding'),
    warn: options.warn ?? (() => {}),
    onModelEvent,
  }
}

const noSettings: ModelSettings = {}

const toText = (text: CallResult): string => text as string

const callCancelled = (): DOMException => new DOMException('The call was cancelled.', 'AbortError')
