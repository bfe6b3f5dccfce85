/**
 * The engine on this machine: models in a process of their own, over node-llama-cpp.
 * One model is loaded at a time, and one answer is made at a time: two that compute
 * beside each other on the same cores are both many times slower.
 */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { LlmError } from '../../errors.ts'
import { checkHeader } from '../../models/gguf.ts'
import type { Model, ModelStore } from '../../models/store.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import { readAhead } from '../read-ahead.ts'
import type { GenerateRequest } from '../request.ts'
import { ModelProcess } from './model-process.ts'
import { readRequest } from './protocol.ts'
import { Turns } from './turns.ts'

/** A file that crashes the loader twice does so always, and costs seconds each time. */
const maxLoadCrashes = 2

export interface LocalEngineOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  readonly modelProcess: string | undefined
}

interface Loaded {
  readonly name: string
  readonly fingerprint: string
  readonly process: ModelProcess
  contextSize: number
}

export class LocalEngine implements Engine {
  readonly #models: Pick<ModelStore, 'get'>
  readonly #threads: number
  readonly #contextSize: number
  readonly #processFile: string
  readonly #turns = new Turns()
  /** How often in a row the process of a model has ended before it said anything. */
  readonly #crashes = new Map<string, number>()
  /** How often a model has crashed its process while it was loaded. */
  readonly #loadCrashes = new Map<string, number>()
  #loaded: Loaded | undefined
  #closed = false

  constructor(models: Pick<ModelStore, 'get'>, options: LocalEngineOptions) {
    this.#models = models
    this.#threads = options.threads ?? Math.max(1, availableParallelism() - 1)
    this.#contextSize = options.contextSize ?? 4096
    this.#processFile = options.modelProcess ?? fileURLToPath(new URL('./process/main.js', import.meta.url))
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterableIterator<GenerateEvent> {
    return readAhead(call.signal, async (push, signal) => {
      const turn = this.#turns.take(signal)
      try {
        // Checked while waiting: bad input and an unknown model are refused at once.
        const checked = readRequest(request)
        const model = await this.#models.get(request.model)
        if (await turn) await this.#answer(model, checked, signal, push)
      } finally {
        turn.then(
          (end) => end?.(),
          () => {},
        )
      }
    })
  }

  loaded(): readonly LoadedModel[] {
    if (!this.#loaded) return []
    const { name, contextSize, process } = this.#loaded
    return [{ name, state: contextSize === 0 ? 'loading' : 'ready', processId: process.id, contextSize }]
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#loaded?.process.stop()
    this.#loaded = undefined
  }

  async #answer(
    model: Model,
    request: GenerateRequest,
    signal: AbortSignal,
    push: (event: GenerateEvent) => void,
  ): Promise<void> {
    const startedAt = performance.now()
    const warm = this.#loaded !== undefined
    const loaded = await this.#load(model, signal)
    if (!loaded) return
    const loadMs = performance.now() - startedAt
    let begun = false
    try {
      await loaded.process.generate(request, signal, (event) => {
        begun = true
        if (event.type === 'text') this.#crashes.delete(loaded.fingerprint)
        push(event.type === 'end' ? { ...event, timings: { ...event.timings, loadMs } } : event)
      })
    } catch (error) {
      if (loaded.process.ended) this.#onCrash(loaded)
      // It had died since the last call, unnoticed: this one has not begun, and gets a new process.
      if (!warm || begun || !loaded.process.ended || loaded.process.crashed || this.#closed) throw error
      await this.#answer(model, request, signal, push)
    }
  }

  /** The process of this model, started where it does not run. Nothing when the caller has left. */
  async #load(model: Model, signal: AbortSignal): Promise<Loaded | undefined> {
    const fingerprint = this.#fingerprint(model)
    if (!this.#loaded || this.#loaded.process.ended || this.#loaded.fingerprint !== fingerprint) {
      if ((this.#loadCrashes.get(fingerprint) ?? 0) >= maxLoadCrashes) throw badModel(model)
      await checkHeader(model)
      await this.#loaded?.process.stop()
      this.#loaded = undefined
      await pause(restartDelayMs(this.#crashes.get(fingerprint) ?? 0), signal)
      if (signal.aborted) return undefined
      if (this.#closed) throw new LlmError('upstream', 'The engine was closed.')
      this.#loaded = this.#start(model, fingerprint)
    }
    const loaded = this.#loaded
    try {
      // The load goes on when its first caller leaves: the next one wants it, too.
      const contextSize = await Promise.race([loaded.process.ready, aborted(signal)])
      if (contextSize === undefined) return undefined
      loaded.contextSize = contextSize
      return loaded
    } catch (error) {
      if (loaded.process.crashed)
        this.#loadCrashes.set(fingerprint, (this.#loadCrashes.get(fingerprint) ?? 0) + 1)
      this.#onCrash(loaded)
      throw error
    }
  }

  #start(model: Model, fingerprint: string): Loaded {
    const process = new ModelProcess(this.#processFile, {
      modelPath: model.path,
      modelName: model.name,
      fingerprint,
      threads: this.#threads,
      contextSize: this.#contextSize,
    })
    return { name: model.name, fingerprint, process, contextSize: 0 }
  }

  #onCrash(loaded: Loaded): void {
    if (this.#loaded === loaded) this.#loaded = undefined
    this.#crashes.set(loaded.fingerprint, (this.#crashes.get(loaded.fingerprint) ?? 0) + 1)
  }

  #fingerprint({ path, sizeBytes, modifiedAt }: Model): string {
    const parts = [path, sizeBytes, modifiedAt.getTime(), this.#threads, this.#contextSize]
    return `fp_${createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 12)}`
  }
}

const badModel = ({ name }: Model): LlmError =>
  new LlmError(
    'upstream',
    `The file of the model "${name}" has crashed the engine ${maxLoadCrashes} times while it was loaded. It is tried again when the file changes.`,
  )

/** At once after the first crash, then 1 s, 2 s, 4 s, up to 30 s. */
const restartDelayMs = (crashes: number): number =>
  crashes < 2 ? 0 : Math.min(30_000, 1_000 * 2 ** (crashes - 2))

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  ms === 0 ? Promise.resolve() : delay(ms, undefined, { signal }).catch(() => undefined)

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
