/**
 * The engine on this machine: models in a process of their own, over node-llama-cpp.
 * One model is loaded at a time, and one answer is made at a time: two that compute
 * beside each other on the same cores are both many times slower.
 */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { LlmError } from '../../errors.ts'
import { checkHeader } from '../../models/gguf.ts'
import type { Model, ModelStore } from '../../models/store.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import { readAhead } from '../read-ahead.ts'
import { type GenerateRequest, textLength } from '../request.ts'
import { Failures } from './failures.ts'
import { ModelProcess } from './model-process.ts'
import { readRequest } from './protocol.ts'
import { Turns } from './turns.ts'

export interface LocalEngineOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  readonly modelProcess: string | undefined
}

interface Loaded {
  readonly name: string
  readonly fingerprint: string
  readonly process: ModelProcess
}

/** What is asked of a model process. */
type Work<T> = (loaded: Loaded, request: GenerateRequest, loadMs: number) => Promise<T>

export class LocalEngine implements Engine {
  readonly #models: Pick<ModelStore, 'get'>
  readonly #threads: number
  readonly #contextSize: number
  readonly #processFile: string
  readonly #turns = new Turns()
  readonly #failures = new Failures()
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
      let begun = false
      await this.#ask(
        request,
        signal,
        ({ fingerprint, process }, checked, loadMs) =>
          process.generate(checked, signal, (event) => {
            begun = true
            if (event.type === 'text') this.#failures.onText(fingerprint)
            push(event.type === 'end' ? { ...event, timings: { ...event.timings, loadMs } } : event)
          }),
        () => begun,
      )
    })
  }

  async countTokens(request: GenerateRequest, { signal }: EngineCall): Promise<number> {
    const count = await this.#ask(request, signal, ({ process }, checked) =>
      process.countTokens(checked, signal),
    )
    if (count === undefined) throw new DOMException('The call was cancelled.', 'AbortError')
    return count
  }

  loaded(): readonly LoadedModel[] {
    if (!this.#loaded || this.#loaded.process.ended) return []
    const { name, process } = this.#loaded
    const { id, contextSize } = process
    return [{ name, state: contextSize === 0 ? 'loading' : 'ready', processId: id, contextSize }]
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#loaded?.process.stop()
    this.#loaded = undefined
  }

  /** Waits for its turn and for the model. Nothing when the caller has left. */
  async #ask<T>(
    request: GenerateRequest,
    signal: AbortSignal,
    work: Work<T>,
    hasBegun = (): boolean => false,
  ): Promise<T | undefined> {
    // Checked before the queue: bad input is refused at once, and is not held.
    const checked = readRequest(request)
    const turn = this.#turns.take(signal, textLength(checked))
    turn.catch(() => {}) // Heard of below, but only after the model is found.
    try {
      const model = await this.#models.get(request.model)
      if (!(await turn)) return undefined
      return await this.#do((loaded, loadMs) => work(loaded, checked, loadMs), model, signal, hasBegun)
    } finally {
      turn.then(
        (end) => end?.(),
        () => {},
      )
    }
  }

  async #do<T>(
    work: (loaded: Loaded, loadMs: number) => Promise<T>,
    model: Model,
    signal: AbortSignal,
    hasBegun: () => boolean,
  ): Promise<T | undefined> {
    const startedAt = performance.now()
    const warm = this.#loaded !== undefined
    const loaded = await this.#load(model, signal)
    if (!loaded) return undefined
    const loadMs = performance.now() - startedAt
    try {
      return await work(loaded, loadMs)
    } catch (error) {
      if (loaded.process.ended) this.#onEnd(loaded)
      // It had died since the last call, unnoticed: this one has not begun, and gets a new process.
      if (!warm || hasBegun() || !loaded.process.ended || loaded.process.crashed || this.#closed) throw error
      return this.#do(work, model, signal, hasBegun)
    }
  }

  /** The process of this model, started where it does not run. Nothing when the caller has left. */
  async #load(model: Model, signal: AbortSignal): Promise<Loaded | undefined> {
    if (signal.aborted) return undefined
    const fingerprint = this.#fingerprint(model)
    if (!this.#loaded || this.#loaded.process.ended || this.#loaded.fingerprint !== fingerprint) {
      this.#failures.check(fingerprint, model.name)
      await checkHeader(model)
      // Who has left must not cost the others their model.
      if (signal.aborted) return undefined
      await this.#loaded?.process.stop()
      this.#loaded = undefined
      if (this.#closed) throw new LlmError('overloaded', 'The engine was closed.')
      this.#loaded = this.#start(model, fingerprint)
    }
    const loaded = this.#loaded
    try {
      // The load goes on when its first caller leaves: the next one wants it, too.
      const ready = await Promise.race([loaded.process.ready, aborted(signal)])
      if (ready === undefined) return undefined
      this.#failures.onLoaded(fingerprint)
      return loaded
    } catch (error) {
      if (loaded.process.crashed) this.#failures.onLoadCrash(fingerprint)
      this.#onEnd(loaded)
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
    return { name: model.name, fingerprint, process }
  }

  #onEnd(loaded: Loaded): void {
    if (this.#loaded === loaded) this.#loaded = undefined
    this.#failures.onEnd(loaded.fingerprint)
  }

  #fingerprint({ path, sizeBytes, modifiedAt }: Model): string {
    const parts = [path, sizeBytes, modifiedAt.getTime(), this.#threads, this.#contextSize]
    return `fp_${createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 12)}`
  }
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
