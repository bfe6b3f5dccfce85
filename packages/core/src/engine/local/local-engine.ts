/**
 * The engine on this machine: models in a process of their own, over node-llama-cpp.
 * One model is loaded at a time, and one answer is made at a time: two that compute
 * beside each other on the same cores are both many times slower.
 */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { LlmError } from '../../errors.ts'
import type { Model, ModelStore } from '../../models/store.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import { readAhead } from '../read-ahead.ts'
import { type GenerateRequest, type LoadOptions, textLength } from '../request.ts'
import { Failures } from './failures.ts'
import { ModelProcess } from './model-process.ts'
import { readRequest } from './protocol.ts'
import { Turns } from './turns.ts'

export interface LocalEngineOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  readonly parallel: number | undefined
  /** In milliseconds. */
  readonly keepAlive: number | 'forever'
  readonly modelProcess: string | undefined
}

interface Loaded {
  readonly name: string
  readonly fingerprint: string
  readonly contextSize: number
  readonly process: ModelProcess
  /** As the last call that said so wants it. */
  keepAlive: number | 'forever'
  /** When somebody used it last. */
  usedAt: number
  /** It goes as soon as nobody uses it. */
  unwanted: boolean
}

/** What is asked of a model process. */
type Work<T> = (loaded: Loaded, loadMs: number) => Promise<T>

type Decided = LoadOptions & { readonly contextSize: number }

/** A timer cannot wait longer. */
const longestTimerMs = 2 ** 31 - 1

export class LocalEngine implements Engine {
  readonly #models: Pick<ModelStore, 'get' | 'check'>
  readonly #threads: number
  readonly #contextSize: number
  readonly #parallel: number
  readonly #keepAlive: number | 'forever'
  readonly #processFile: string
  readonly #turns = new Turns()
  readonly #failures = new Failures()
  #loaded: Loaded | undefined
  #expiry: NodeJS.Timeout | undefined
  /** The process that was let go last. */
  #leaving: Promise<void> | undefined
  #starting: Promise<Loaded> | undefined
  #calls = 0
  #closed = false

  constructor(models: Pick<ModelStore, 'get' | 'check'>, options: LocalEngineOptions) {
    this.#models = models
    this.#threads = options.threads ?? Math.max(1, availableParallelism() - 1)
    this.#contextSize = options.contextSize ?? 4096
    this.#parallel = options.parallel ?? 4
    this.#keepAlive = options.keepAlive
    this.#processFile = options.modelProcess ?? fileURLToPath(new URL('./process/main.js', import.meta.url))
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterableIterator<GenerateEvent> {
    return readAhead(call.signal, async (push, signal) => {
      let begun = false
      const checked = readRequest(request)
      await this.#take(
        checked,
        signal,
        ({ fingerprint, process }, loadMs) =>
          process.generate(checked, { ...call, signal }, (event) => {
            begun = true
            if (event.type === 'text') this.#failures.onText(fingerprint)
            push(event.type === 'end' ? { ...event, timings: { ...event.timings, loadMs } } : event)
          }),
        () => begun,
      )
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
    const name = this.#loaded?.name === model ? model : (await this.#models.get(model)).name
    if (this.#loaded?.name !== name) return
    // Who is being answered is answered to the end, and who asks meanwhile wants it again.
    this.#loaded.unwanted = true
    if (this.#calls === 0) await this.#letGo()
  }

  loaded(): readonly LoadedModel[] {
    if (!this.#loaded || this.#loaded.process.ended) return []
    const { name, process, keepAlive, usedAt } = this.#loaded
    const expiresAt = dateAfter(this.#calls > 0 ? Date.now() : usedAt, keepAlive)
    const { contextSize = 0, sizeBytes = 0, gpuBytes = 0 } = process.footprint ?? {}
    const state = process.footprint ? 'ready' : 'loading'
    return [{ name, state, processId: process.id, contextSize, sizeBytes, gpuBytes, expiresAt }]
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#letGo()
  }

  async #ask<T>(request: GenerateRequest, signal: AbortSignal, work: Work<T | undefined>): Promise<T> {
    // A signal may be shared by any number of calls, which is no leak and no reason for a warning.
    setMaxListeners(0, signal)
    const found = await this.#take(request, signal, work)
    if (found === undefined) throw new DOMException('The call was cancelled.', 'AbortError')
    return found
  }

  /** Waits for its turn and for the model. Nothing when the caller has left. */
  async #take<T>(
    request: GenerateRequest,
    signal: AbortSignal,
    work: Work<T>,
    hasBegun = (): boolean => false,
  ): Promise<T | undefined> {
    const model = await this.#models.get(request.model)
    const { load = {} } = request
    let contextSize = 0
    const keyOf = (): string => {
      contextSize = this.#contextFor(model, load)
      return this.#fingerprint(model, contextSize)
    }
    const end = await this.#turns.take(signal, keyOf, textLength(request))
    if (!end) return undefined
    this.#onCall()
    try {
      // Decided with the turn: when a process dies, all that are inside still want the same of the next.
      return await this.#do(work, model, { ...load, contextSize }, signal, hasBegun)
    } finally {
      this.#onCallEnd()
      end()
    }
  }

  async #do<T>(
    work: Work<T>,
    model: Model,
    load: Decided,
    signal: AbortSignal,
    hasBegun: () => boolean,
  ): Promise<T | undefined> {
    const startedAt = performance.now()
    const warm = this.#loaded !== undefined
    const loaded = await this.#load(model, load, signal)
    if (!loaded) return undefined
    const loadMs = performance.now() - startedAt
    try {
      return await work(loaded, loadMs)
    } catch (error) {
      if (loaded.process.ended) this.#onEnd(loaded)
      // It had died since the last call, unnoticed: this one has not begun, and gets a new process.
      if (!warm || hasBegun() || !loaded.process.ended || loaded.process.crashed || this.#closed) throw error
      return this.#do(work, model, load, signal, hasBegun)
    }
  }

  /** The process of this model, started where it does not run. Nothing when the caller has left. */
  async #load(model: Model, load: Decided, signal: AbortSignal): Promise<Loaded | undefined> {
    if (signal.aborted) return undefined
    const loaded = await this.#started(model, load.contextSize, signal)
    if (!loaded) return undefined
    loaded.keepAlive = load.keepAlive ?? loaded.keepAlive
    loaded.unwanted = false
    try {
      // The load goes on when its first caller leaves: the next one wants it, too.
      const ready = await unlessAborted(loaded.process.ready, signal)
      if (ready === undefined) return undefined
      this.#failures.onLoaded(loaded.fingerprint)
      return loaded
    } catch (error) {
      this.#onEnd(loaded)
      throw error
    }
  }

  /** As it is loaded, where that is enough: whoever says nothing gets no less than he would alone. */
  #contextFor({ name }: Model, load: LoadOptions): number {
    const loaded = this.#loaded?.name === name && !this.#loaded.process.ended ? this.#loaded : undefined
    const size = load.contextSize ?? Math.max(this.#contextSize, loaded?.contextSize ?? 0)
    const given = loaded?.process.footprint?.contextSize ?? Number.POSITIVE_INFINITY
    // The model was made for less: it has all that there is.
    return loaded && given < loaded.contextSize && given <= size ? loaded.contextSize : size
  }

  /** All calls inside want the same: whoever comes first starts it. */
  async #started(model: Model, contextSize: number, signal: AbortSignal): Promise<Loaded | undefined> {
    const fingerprint = this.#fingerprint(model, contextSize)
    if (this.#runs(fingerprint)) return this.#loaded
    this.#failures.check(fingerprint, model.name)
    await this.#models.check(model)
    // Who has left must not cost the others their model.
    if (signal.aborted) return undefined
    this.#starting ??= this.#replace(model, fingerprint, contextSize).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #replace(model: Model, fingerprint: string, contextSize: number): Promise<Loaded> {
    if (this.#loaded && this.#runs(fingerprint)) return this.#loaded
    await this.#letGo()
    if (this.#closed) throw new LlmError('overloaded', 'The engine was closed.')
    this.#loaded = this.#start(model, fingerprint, contextSize)
    return this.#loaded
  }

  #runs(fingerprint: string): boolean {
    return this.#loaded?.fingerprint === fingerprint && !this.#loaded.process.ended
  }

  #start(model: Model, fingerprint: string, contextSize: number): Loaded {
    const process = new ModelProcess(this.#processFile, {
      modelPath: model.path,
      modelName: model.name,
      fingerprint,
      threads: this.#threads,
      contextSize,
      parallel: this.#parallel,
    })
    const { name } = model
    return {
      name,
      fingerprint,
      contextSize,
      process,
      keepAlive: this.#keepAlive,
      usedAt: Date.now(),
      unwanted: false,
    }
  }

  /** Ends the process, and waits for the end of one that was let go before. */
  async #letGo(): Promise<void> {
    clearTimeout(this.#expiry)
    const going = this.#loaded?.process.stop()
    this.#loaded = undefined
    if (going) this.#leaving = going
    await this.#leaving
  }

  #onCall(): void {
    this.#calls++
    clearTimeout(this.#expiry)
  }

  #onCallEnd(): void {
    const loaded = this.#loaded
    if (--this.#calls > 0) return
    if (!loaded || this.#closed) return
    loaded.usedAt = Date.now()
    const keepAlive = loaded.unwanted ? 0 : loaded.keepAlive
    if (keepAlive !== 'forever') this.#letGoIn(keepAlive)
  }

  /** By a timer even when there is no time left: the next in line may want the same model, and stops it. */
  #letGoIn(ms: number): void {
    const waitMs = Math.min(ms, longestTimerMs)
    const onTime = (): void => {
      if (ms > waitMs) this.#letGoIn(ms - waitMs)
      else void this.#letGo()
    }
    this.#expiry = setTimeout(onTime, waitMs).unref()
  }

  /** However many calls it had: once. */
  #onEnd(loaded: Loaded): void {
    if (this.#loaded !== loaded) return
    this.#loaded = undefined
    if (loaded.process.crashed && !loaded.process.footprint) this.#failures.onLoadCrash(loaded.fingerprint)
    this.#failures.onEnd(loaded.fingerprint)
  }

  #fingerprint({ path, sizeBytes, modifiedAt }: Model, contextSize: number): string {
    const parts = [path, sizeBytes, modifiedAt.getTime(), this.#threads, contextSize]
    return `fp_${createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 12)}`
  }
}

/** Nothing once the signal has aborted. Leaves nothing behind on it: it may be one that lives long. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let leave = (): void => {}
  const left = new Promise<undefined>((resolve) => {
    leave = () => resolve(undefined)
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
  try {
    return await Promise.race([promise, left])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

/** No later than dates go. */
const dateAfter = (time: number, keepAlive: number | 'forever'): Date | 'never' =>
  keepAlive === 'forever' ? 'never' : new Date(Math.min(time + keepAlive, 8.64e15))
