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
  textLength,
} from '../request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../tokens.ts'
import { keyOf } from './identity.ts'
import {
  type Asking,
  fromFloats,
  type LoadConfig,
  type Reading,
  type Result,
  readDetokenizeRequest,
  readEmbedRequest,
  readRequest,
  readRerankRequest,
  readTokenizeRequest,
  total,
} from './ipc/protocol.ts'
import { tokensIn } from './ipc/reader-lag.ts'
import { RunFolder } from './ipc/runtime-dir.ts'
import type { Loaded, Work } from './local-model.ts'
import { Crowd } from './supervisor/call-cap.ts'
import { Suspects } from './supervisor/grammar-quarantine.ts'
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
  readonly modelProcess: string
  readonly runFolder: string | undefined
  /** Hears what about a loaded model is not as it was wanted. */
  readonly warn?: (message: string) => void
  /** Hears where prompts go another way than those before. */
  readonly debug?: (details: object, message: string) => void
}

type ModelsOnDisk = Pick<ModelStore, 'get' | 'check' | 'details'>

export class LocalEngine implements Engine {
  readonly #models: ModelsOnDisk
  readonly #loaded: LoadedModels
  readonly #crowd = new Crowd()
  readonly #suspects = new Suspects()
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
        processFile: options.modelProcess,
        runFolder: new RunFolder(options.runFolder),
        check: (model) => models.check(model),
        reads: async (model) => (await models.details(model)).capabilities.includes('embedding'),
        warn: options.warn ?? (() => {}),
      },
      options.maxLoadedModels,
    )
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterableIterator<GenerateEvent> {
    let tellRead: ((tokens: number) => void) | undefined
    const onRead = (event: GenerateEvent): void => tellRead?.(tokensIn(event))
    const answer = async (push: (event: GenerateEvent) => void, signal: AbortSignal): Promise<void> => {
      let begun = false
      let end: GenerateEvent | undefined
      const checked = readRequest(request)
      this.#suspects.check(checked)
      await this.#use(
        checked,
        textLength(checked),
        signal,
        async (loaded, loadMs) => {
          const { fingerprint, process } = loaded
          try {
            const whose = { ...call, tenant: tenantOf(call), signal }
            const onEvent = (event: GenerateEvent): void => {
              begun = true
              if (event.type === 'text') this.#loaded.failures.onText(fingerprint)
              if (event.type === 'start') {
                lease(loaded, checked, event)
                this.#tellOf(event)
              }
              if (event.type === 'end') end = { ...event, timings: { ...event.timings, loadMs } }
              else push(event)
            }
            await process.generate(checked, whose, onEvent, (tell) => {
              tellRead = tell
            })
          } catch (error) {
            if (process.crashed || process.stuck) this.#suspects.note(checked)
            throw error
          }
        },
        () => begun,
      )
      // Behind the call: who has heard the end finds the model at rest.
      if (end) push(end)
    }
    return readAhead(call.signal, answer, onRead)
  }

  async countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    const checked = readRequest(request)
    const toCount = (count: Result): number => count as number
    const { results } = await this.#ask('count', checked, textLength(checked), call, toCount)
    return results[0] ?? 0
  }

  async render(request: GenerateRequest, call: EngineCall): Promise<string> {
    const checked = readRequest(request)
    const { results } = await this.#ask('render', checked, textLength(checked), call, toText)
    return results.join('')
  }

  async embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings> {
    const startedAt = performance.now()
    const checked = readEmbedRequest(request)
    const { results, loadMs } = await this.#ask('embed', checked, total(checked.inputs), call, toRead)
    return {
      vectors: inOrder(results),
      inputTokens: tokensOf(results),
      loadMs,
      totalMs: performance.now() - startedAt,
    }
  }

  async rerank(request: RerankRequest, call: EngineCall): Promise<Ranking> {
    const checked = readRerankRequest(request)
    const size = total([checked.query, ...checked.documents])
    const { results } = await this.#ask('rerank', checked, size, call, toRead)
    return { scores: inOrder(results).map(([score = 0]) => score), inputTokens: tokensOf(results) }
  }

  async tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]> {
    const checked = readTokenizeRequest(request)
    const toIds = (ids: Result): readonly number[] => ids as readonly number[]
    const { results } = await this.#ask('tokenize', checked, checked.text.length, call, toIds)
    return results.flat()
  }

  async detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string> {
    const checked = readDetokenizeRequest(request)
    const { results } = await this.#ask('detokenize', checked, checked.tokens.length, call, toText)
    return results.join('')
  }

  async load(model: string, load: LoadOptions, { signal }: EngineCall): Promise<void> {
    const nothing = readRequest({ model, input: { kind: 'text', prompt: [] }, load })
    if (!(await this.#use(nothing, 0, signal, async () => true))) throw cancelled()
  }

  async unload(model: string): Promise<void> {
    // By the name that it is loaded under it is let go even when its file is gone.
    const named = this.#loaded.all().find(({ loaded }) => loaded?.name === model)
    const loaded = named ?? this.#loaded.get(keyOf(await this.#models.get(model)))
    await loaded?.unload()
  }

  loaded(): readonly LoadedModel[] {
    return this.#loaded.all().flatMap(({ loaded }) => loaded ?? [])
  }

  async close(): Promise<void> {
    this.#loaded.close()
  }

  /** What comes of it, piece by piece. */
  async #ask<T>(
    type: Exclude<Asking, 'generate'>,
    request: Asked,
    size: number,
    call: EngineCall,
    read: (result: Result) => T,
  ): Promise<{ readonly results: readonly T[]; readonly loadMs: number }> {
    const { signal } = call
    const results: T[] = []
    const work: Work<{ readonly loadMs: number }> = async ({ fingerprint, process }, loadMs) => {
      await process.ask(type, request, { ...call, tenant: tenantOf(call) }, (result) => {
        if (type === 'embed' || type === 'rerank') this.#loaded.failures.onText(fingerprint)
        results.push(read(result))
      })
      return { loadMs }
    }
    const found = await this.#use(request, size, signal, work, () => results.length > 0)
    if (!found || signal.aborted) throw cancelled()
    return { results, ...found }
  }

  /** Of the prompt nothing is logged but numbers. */
  #tellOf({ model, divergence, inputTokens, reusedTokens }: Extract<GenerateEvent, { type: 'start' }>): void {
    if (divergence)
      this.#debug(
        { model, inputTokens, reusedTokens, sharedTokens: divergence.tokens },
        'A prompt goes another way than the one before: what is behind that is read again.',
      )
  }

  /** Waits for a place, its turn, and the model. Nothing when the caller has left. */
  async #use<T>(
    request: Asked,
    size: number,
    signal: AbortSignal,
    work: Work<T>,
    hasBegun = (): boolean => false,
  ): Promise<T | undefined> {
    // A signal may be shared by any number of calls, which is no leak and no reason for a warning.
    setMaxListeners(0, signal)
    const { load = {} } = request
    if (load.contextSize && load.contextSize > this.#maxContextSize)
      throw contextTooLarge(load.contextSize, this.#maxContextSize)
    const model = await this.#models.get(request.model)
    return this.#crowd.with(size, () =>
      this.#loaded.use(keyOf(model), signal, (place) => place.use(model, load, signal, work, hasBegun)),
    )
  }
}

/** A model stays loaded while it keeps something for the next call. */
function lease(loaded: Loaded, { input }: GenerateRequest, prompt: PromptUsage): void {
  const { cacheReadTokens, cacheWriteTokens } = prompt
  if (cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h'] === 0) return
  const lifetime = lifetimesOf(input).includes('1h') ? '1h' : '5m'
  loaded.leasedUntil = Math.max(loaded.leasedUntil, Date.now() + cacheLifetimes[lifetime])
}

/** Of every request. */
interface Asked {
  readonly model: string
  readonly load?: LoadOptions
}

interface Read {
  readonly index: number
  readonly vector: readonly number[]
  readonly inputTokens: number
}

const toText = (text: Result): string => text as string

const toRead = (result: Result): Read => {
  const { vector, ...reading } = result as Reading
  return { ...reading, vector: fromFloats(vector) }
}

/** They come as they are ready. */
const inOrder = (read: readonly Read[]): readonly (readonly number[])[] =>
  [...read].sort((a, b) => a.index - b.index).map(({ vector }) => vector)

const tokensOf = (read: readonly Read[]): number =>
  read.reduce((sum, { inputTokens }) => sum + inputTokens, 0)

const cancelled = (): DOMException => new DOMException('The call was cancelled.', 'AbortError')

const contextTooLarge = (asked: number, most: number): LlmError =>
  new LlmError(
    'invalid_request',
    `A context of ${asked} tokens is more than the ${most} that may be asked for here.`,
    { param: 'contextSize' },
  )

/** Apps share model processes, but not what was read for their callers; the workers of one app do. */
const tenantOf = ({ tenant = '' }: EngineCall): string => `${app}/${tenant}`
const app = createHash('sha256')
  .update(process.argv[1] ?? process.cwd())
  .digest('hex')
  .slice(0, 12)
