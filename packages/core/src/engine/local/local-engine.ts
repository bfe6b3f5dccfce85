/** The engine on this machine: models in processes of their own, over node-llama-cpp. */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { LlmError } from '../../errors.ts'
import type { ModelStore } from '../../models/store.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import { readAhead } from '../read-ahead.ts'
import { type GenerateRequest, type LoadOptions, textLength } from '../request.ts'
import { Crowd } from './crowd.ts'
import { LoadedModels } from './loaded-models.ts'
import type { Work } from './local-model.ts'
import { type LoadConfig, readRequest } from './protocol.ts'
import { RunFolder } from './run-folder.ts'
import { Suspects } from './suspects.ts'

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
  /** In milliseconds. */
  readonly keepAlive: number | 'forever'
  readonly modelProcess: string | undefined
  readonly runFolder: string | undefined
  /** Hears what about a loaded model is not as it was wanted. */
  readonly warn?: (message: string) => void
}

export class LocalEngine implements Engine {
  readonly #models: Pick<ModelStore, 'get' | 'check'>
  readonly #loaded: LoadedModels
  readonly #crowd = new Crowd()
  readonly #suspects = new Suspects()
  readonly #maxContextSize: number

  constructor(models: Pick<ModelStore, 'get' | 'check'>, options: LocalEngineOptions) {
    this.#models = models
    const { maxContextSize = Number.POSITIVE_INFINITY, contextSize = 4096 } = options
    this.#maxContextSize = maxContextSize
    const { gpuLayers, flashAttention, kvCacheType, parallel = 4 } = options
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
        },
        keepAlive: options.keepAlive,
        processFile: options.modelProcess ?? fileURLToPath(new URL('./process/main.js', import.meta.url)),
        runFolder: new RunFolder(options.runFolder),
        check: (model) => models.check(model),
        warn: options.warn ?? (() => {}),
      },
      options.maxLoadedModels,
    )
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterableIterator<GenerateEvent> {
    return readAhead(call.signal, async (push, signal) => {
      let begun = false
      let end: GenerateEvent | undefined
      const checked = readRequest(request)
      this.#suspects.check(checked)
      await this.#use(
        checked,
        signal,
        async ({ fingerprint, process }, loadMs) => {
          try {
            await process.generate(checked, { ...call, tenant: tenantOf(call), signal }, (event) => {
              begun = true
              if (event.type === 'text') this.#loaded.failures.onText(fingerprint)
              if (event.type === 'end') end = { ...event, timings: { ...event.timings, loadMs } }
              else push(event)
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
    })
  }

  async countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    const checked = readRequest(request)
    return this.#ask(checked, call.signal, ({ process }) => process.countTokens(checked, call))
  }

  async render(request: GenerateRequest, call: EngineCall): Promise<string> {
    const checked = readRequest(request)
    return this.#ask(checked, call.signal, ({ process }) => process.render(checked, call))
  }

  async load(model: string, load: LoadOptions, { signal }: EngineCall): Promise<void> {
    const nothing = readRequest({ model, input: { kind: 'text', prompt: [] }, load })
    await this.#ask(nothing, signal, async () => true)
  }

  async unload(model: string): Promise<void> {
    // By the name that it is loaded under it is let go even when its file is gone.
    const loaded = this.#loaded.get(model) ?? this.#loaded.get((await this.#models.get(model)).name)
    await loaded?.unload()
  }

  loaded(): readonly LoadedModel[] {
    return this.#loaded.all().flatMap(({ loaded }) => loaded ?? [])
  }

  async close(): Promise<void> {
    this.#loaded.close()
  }

  async #ask<T>(request: GenerateRequest, signal: AbortSignal, work: Work<T | undefined>): Promise<T> {
    // A signal may be shared by any number of calls, which is no leak and no reason for a warning.
    setMaxListeners(0, signal)
    const found = await this.#use(request, signal, work)
    if (found === undefined) throw new DOMException('The call was cancelled.', 'AbortError')
    return found
  }

  /** Waits for a place, its turn, and the model. Nothing when the caller has left. */
  async #use<T>(
    request: GenerateRequest,
    signal: AbortSignal,
    work: Work<T>,
    hasBegun = (): boolean => false,
  ): Promise<T | undefined> {
    const { load = {} } = request
    if (load.contextSize && load.contextSize > this.#maxContextSize)
      throw contextTooLarge(load.contextSize, this.#maxContextSize)
    const model = await this.#models.get(request.model)
    return this.#crowd.with(textLength(request), () =>
      this.#loaded.use(model.name, signal, (place) => place.use(model, load, signal, work, hasBegun)),
    )
  }
}

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
