/**
 * One model as an app has it: its process joined or started when somebody asks, replaced when somebody wants it
 * loaded otherwise, left when nobody has asked for a while.
 */
import { resolve } from 'node:path'
import { LlmError } from '../../errors.ts'
import type { Model } from '../../models/store.ts'
import type { LoadedModel } from '../engine.ts'
import type { LoadOptions } from '../request.ts'
import { type Identity, identify } from './identity.ts'
import type { LoadConfig } from './ipc/protocol.ts'
import type { RunFolder } from './ipc/runtime-dir.ts'
import type { Failures } from './supervisor/failures.ts'
import { Turns } from './supervisor/load-gate.ts'
import { ModelProcess } from './supervisor/process-client.ts'

/** How models are loaded in this app, where a call says nothing else. */
export interface Setting {
  readonly load: Omit<LoadConfig, 'modelPath' | 'modelName' | 'fingerprint' | 'contextSize' | 'adapters'>
  readonly contextSize: number
  /** In milliseconds. */
  readonly keepAlive: number | 'forever'
  readonly processFile: string
  readonly runFolder: RunFolder
  /** Throws `upstream` for a file that would end the native code. */
  readonly check: (model: Model) => Promise<void>
  /** Whether it reads texts, and does not write. */
  readonly reads: (model: Model) => Promise<boolean>
  /** Hears what about a loaded model is not as it was wanted. */
  readonly warn: (message: string) => void
}

export interface Loaded {
  /** Of the model that it was loaded for: others may have the same weights. */
  readonly name: string
  readonly digest: string
  readonly fingerprint: string
  readonly contextSize: number
  readonly process: ModelProcess
  /** As the last call that said so wants it. */
  keepAlive: number | 'forever'
  /** So long it keeps what somebody asked for by a breakpoint, in milliseconds since 1970. */
  leasedUntil: number
  /** It goes as soon as nobody uses it. */
  unwanted: boolean
}

/** What is asked of a loaded model. */
export type Work<T> = (loaded: Loaded, loadMs: number) => Promise<T>

type Decided = LoadOptions & { readonly contextSize: number; readonly identity: Identity }

/** A timer cannot wait longer. */
const longestTimerMs = 2 ** 31 - 1

export class LocalModel {
  readonly key: string
  readonly #setting: Setting
  readonly #failures: Failures
  readonly #onRest: () => void
  readonly #turns = new Turns()
  #loaded: Loaded | undefined
  #expiry: NodeJS.Timeout | undefined
  /** The process that was let go last. */
  #leaving: Promise<void> | undefined
  #starting: Promise<Loaded> | undefined
  #calls = 0
  #usedAt = Date.now()
  #closed = false

  /**
   * @param key the weights, whatever they are called
   * @param onRest called when nobody uses it any more, and when it is let go
   */
  constructor(key: string, setting: Setting, failures: Failures, onRest: () => void) {
    this.key = key
    this.#setting = setting
    this.#failures = failures
    this.#onRest = onRest
  }

  /** Whether somebody uses it, or waits for it. */
  get isBusy(): boolean {
    return this.#calls > 0
  }

  get isLoaded(): boolean {
    return this.#loaded !== undefined && !this.#loaded.process.ended
  }

  /** When somebody used it last, in milliseconds since 1970. */
  get usedAt(): number {
    return this.#calls > 0 ? Date.now() : this.#usedAt
  }

  get loaded(): LoadedModel | undefined {
    if (!this.#loaded || !this.isLoaded) return undefined
    const { name, digest, process } = this.#loaded
    const expiresAt = dateAfter(this.usedAt, lastsFor(this.#loaded, this.usedAt))
    const { contextSize = 0, sizeBytes = 0, gpuBytes = 0 } = process.footprint ?? {}
    const state = process.footprint ? 'ready' : 'loading'
    return { name, digest, state, processId: process.id, contextSize, sizeBytes, gpuBytes, expiresAt }
  }

  /**
   * Waits until it is loaded as wanted, beside the calls that want the same. Nothing when the caller has left.
   * @param hasBegun whether something was said already, so that it cannot begin anew
   */
  async use<T>(
    model: Model,
    load: LoadOptions,
    signal: AbortSignal,
    work: Work<T>,
    hasBegun: () => boolean,
  ): Promise<T | undefined> {
    this.#calls++
    clearTimeout(this.#expiry)
    try {
      let decided: Decided | undefined
      const keyOf = (): string => {
        decided = this.#decide(model, load)
        return decided.identity.fingerprint
      }
      const end = await this.#turns.take(signal, keyOf)
      if (!end || !decided) return undefined
      try {
        // Decided with the turn: when a process dies, all that are inside still want the same of the next.
        return await this.#do(work, model, decided, signal, hasBegun)
      } finally {
        end()
      }
    } finally {
      this.#calls--
      this.#usedAt = Date.now()
      this.#whenIdle()
    }
  }

  /** Who is being answered is answered to the end, and who asks meanwhile wants it again. */
  async unload(): Promise<void> {
    if (!this.#loaded) return
    this.#loaded.unwanted = true
    if (this.#calls === 0) await this.letGo()
  }

  /** Waits for the end of a process that was let go before, too. */
  async letGo(): Promise<void> {
    clearTimeout(this.#expiry)
    const going = this.#loaded?.process.release()
    this.#loaded = undefined
    if (going) this.#leaving = going
    await this.#leaving
    this.#onRest()
  }

  /** Its process goes on for other apps, and for a while without any. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#expiry)
    this.#loaded?.process.close()
    this.#loaded = undefined
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
      // It had ended since the last call, unnoticed: this one has not begun, and gets a new process.
      if (!warm || hasBegun() || !loaded.process.ended || loaded.process.crashed || this.#closed) throw error
      return this.#do(work, model, load, signal, hasBegun)
    }
  }

  /** The process of this model, started where it does not run. Nothing when the caller has left. */
  async #load(model: Model, load: Decided, signal: AbortSignal): Promise<Loaded | undefined> {
    if (signal.aborted) return undefined
    const loaded = await this.#started(model, load, signal)
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
      // One that has no room is nothing that would be better after a while.
      this.#onEnd(loaded, LlmError.from(error).code === 'upstream')
      throw error
    }
  }

  /** As it is loaded, where that is enough: whoever says nothing gets no less than he would alone. */
  #contextFor(load: LoadOptions): number {
    const loaded = this.isLoaded ? this.#loaded : undefined
    const size = load.contextSize ?? Math.max(this.#setting.contextSize, loaded?.contextSize ?? 0)
    const given = loaded?.process.footprint?.contextSize ?? Number.POSITIVE_INFINITY
    // The model was made for less: it has all that there is.
    return loaded && given < loaded.contextSize && given <= size ? loaded.contextSize : size
  }

  /** All calls inside want the same: whoever comes first starts it. */
  async #started(model: Model, load: Decided, signal: AbortSignal): Promise<Loaded | undefined> {
    const { name, fingerprint } = load.identity
    if (this.#runs(fingerprint)) return this.#loaded
    this.#failures.check(fingerprint, model.name)
    // A process that runs was started for a file that was found good.
    if (!this.#setting.runFolder.has(name)) await this.#setting.check(model)
    // Who has left must not cost the others their model.
    if (signal.aborted) return undefined
    this.#starting ??= this.#replace(model, load).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #replace(model: Model, { contextSize, identity }: Decided): Promise<Loaded> {
    const { name, fingerprint } = identity
    if (this.#loaded && this.#runs(fingerprint)) return this.#loaded
    await this.letGo()
    if (this.#closed) throw engineClosed()
    const { load, keepAlive, processFile, runFolder, reads, warn } = this.#setting
    const process = new ModelProcess({
      file: processFile,
      runFolder,
      name,
      config: {
        modelPath: resolve(model.path),
        modelName: model.name,
        fingerprint,
        contextSize,
        adapters: model.adapters?.map(({ path, scale, sizeBytes }) => ({
          path: resolve(path),
          scale,
          sizeBytes,
        })),
        ...load,
      },
      reads: () => reads(model),
      onWaiting: () => this.#whenIdle(),
    })
    process.ready.then(
      ({ notes }) => notes.forEach(warn),
      () => {}, // Whoever waits for it hears of it.
    )
    this.#loaded = {
      ...{ name: model.name, digest: model.digest, fingerprint, contextSize, process, keepAlive },
      ...{ leasedUntil: 0, unwanted: false },
    }
    return this.#loaded
  }

  #runs(fingerprint: string): boolean {
    return this.isLoaded && this.#loaded?.fingerprint === fingerprint
  }

  #whenIdle(): void {
    const loaded = this.#loaded
    if (this.#calls > 0 || this.#closed) return
    this.#onRest()
    if (!loaded) return
    // Room is not made for somebody who has left.
    const keepAlive = loaded.unwanted || loaded.process.isWaiting ? 0 : lastsFor(loaded, Date.now())
    if (keepAlive !== 'forever') this.#letGoIn(keepAlive)
  }

  /** By a timer even when there is no time left: the next in line may want it, and stops it. */
  #letGoIn(ms: number): void {
    clearTimeout(this.#expiry)
    const waitMs = Math.min(ms, longestTimerMs)
    const onTime = (): void => {
      if (ms > waitMs) this.#letGoIn(ms - waitMs)
      else void this.letGo()
    }
    this.#expiry = setTimeout(onTime, waitMs).unref()
  }

  /** However many calls it had: once. */
  #onEnd(loaded: Loaded, isFailure = true): void {
    if (this.#loaded !== loaded) return
    this.#loaded = undefined
    if (!isFailure) return
    if (loaded.process.crashed && !loaded.process.footprint) this.#failures.onLoadCrash(loaded.fingerprint)
    this.#failures.onEnd(loaded.fingerprint)
  }

  #decide(model: Model, load: LoadOptions): Decided {
    const contextSize = this.#contextFor(load)
    return { ...load, contextSize, identity: identify(model, { ...this.#setting.load, contextSize }) }
  }
}

export const engineClosed = (): LlmError => new LlmError('overloaded', 'The engine was closed.')

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

/** Who keeps it alive for no time wants it gone, whatever it holds. */
const lastsFor = ({ keepAlive, leasedUntil }: Loaded, time: number): number | 'forever' =>
  keepAlive === 'forever' || keepAlive === 0 ? keepAlive : Math.max(keepAlive, leasedUntil - time)

/** No later than dates go. */
const dateAfter = (time: number, keepAlive: number | 'forever'): Date | 'never' =>
  keepAlive === 'forever' ? 'never' : new Date(Math.min(time + keepAlive, 8.64e15))
