/**
 * One model as an app has it: its process joined or started when somebody asks, replaced when somebody wants it
 * loaded otherwise, left when nobody has asked for a while.
 */
import { resolve } from 'node:path'
import { LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import type { LoadedModel } from '../engine.ts'
import type { LoadOptions } from '../request.ts'
import { identifyProcess, type ProcessIdentity } from './identity.ts'
import type { LoadConfig } from './ipc/protocol.ts'
import type { RuntimeDir } from './ipc/runtime-dir.ts'
import type { Failures } from './supervisor/failures.ts'
import { LoadGate } from './supervisor/load-gate.ts'
import { ProcessClient } from './supervisor/process-client.ts'

/** How models are loaded in this app, where a call says nothing else. */
export interface LocalModelSettings {
  readonly load: Omit<LoadConfig, 'modelPath' | 'modelName' | 'fingerprint' | 'contextSize' | 'adapters'>
  readonly contextSize: number
  /** In milliseconds. */
  readonly keepAlive: number | 'forever'
  readonly processFile: string
  readonly runtimeDir: RuntimeDir
  /** Throws `upstream` for a file that would end the native code. */
  readonly check: (model: Model) => Promise<void>
  /** Whether it reads texts, and does not write. */
  readonly isPooling: (model: Model) => Promise<boolean>
  /** Hears what about a loaded model is not as it was wanted. */
  readonly warn: (message: string) => void
}

export interface LoadedProcess {
  /** Of the model that it was loaded for: others may have the same weights. */
  readonly name: string
  readonly digest: string
  readonly fingerprint: string
  readonly contextSize: number
  readonly process: ProcessClient
  /** As the last call that said so wants it. */
  keepAlive: number | 'forever'
  /** So long it keeps what somebody asked for by a breakpoint, in milliseconds since 1970. */
  cachedUntil: number
  /** It goes as soon as nobody uses it. */
  isUnwanted: boolean
}

/** What is asked of a loaded model. */
export type LoadedTask<T> = (loaded: LoadedProcess, loadMs: number) => Promise<T>

type ResolvedLoad = LoadOptions & { readonly contextSize: number; readonly identity: ProcessIdentity }

/** A timer cannot wait longer. */
const maxTimerMs = 2 ** 31 - 1

export class LocalModel {
  readonly key: string
  readonly #settings: LocalModelSettings
  readonly #failures: Failures
  readonly #onIdle: () => void
  readonly #loadGate = new LoadGate()
  #loaded: LoadedProcess | undefined
  #expiryTimer: NodeJS.Timeout | undefined
  /** The process that was let go last. */
  #releasing: Promise<void> | undefined
  #starting: Promise<LoadedProcess> | undefined
  #activeCalls = 0
  #lastUsedAt = Date.now()
  #closed = false

  /**
   * @param key the weights, whatever they are called
   * @param onIdle called when nobody uses it any more, and when it is let go
   */
  constructor(key: string, settings: LocalModelSettings, failures: Failures, onIdle: () => void) {
    this.key = key
    this.#settings = settings
    this.#failures = failures
    this.#onIdle = onIdle
  }

  /** Whether somebody uses it, or waits for it. */
  get isBusy(): boolean {
    return this.#activeCalls > 0
  }

  get isLoaded(): boolean {
    return this.#loaded !== undefined && !this.#loaded.process.hasEnded
  }

  /** When somebody used it last, in milliseconds since 1970. */
  get lastUsedAt(): number {
    return this.#activeCalls > 0 ? Date.now() : this.#lastUsedAt
  }

  get loaded(): LoadedModel | undefined {
    if (!this.#loaded || !this.isLoaded) return undefined
    const { name, digest, process } = this.#loaded
    const expiresAt = toExpiryDate(this.lastUsedAt, getKeepAliveMs(this.#loaded, this.lastUsedAt))
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
    task: LoadedTask<T>,
    hasBegun: () => boolean,
  ): Promise<T | undefined> {
    this.#activeCalls++
    clearTimeout(this.#expiryTimer)
    try {
      let resolvedLoad: ResolvedLoad | undefined
      const chooseKey = (): string => {
        resolvedLoad = this.#resolveLoad(model, load)
        return resolvedLoad.identity.fingerprint
      }
      const leaveGate = await this.#loadGate.enter(signal, chooseKey)
      if (!leaveGate || !resolvedLoad) return undefined
      try {
        // Decided with the turn: when a process dies, all that are inside still want the same of the next.
        return await this.#runTask(task, model, resolvedLoad, signal, hasBegun)
      } finally {
        leaveGate()
      }
    } finally {
      this.#activeCalls--
      this.#lastUsedAt = Date.now()
      this.#releaseIfIdle()
    }
  }

  /** Who is being answered is answered to the end, and who asks meanwhile wants it again. */
  async unload(): Promise<void> {
    if (!this.#loaded) return
    this.#loaded.isUnwanted = true
    if (this.#activeCalls === 0) await this.release()
  }

  /** Waits for the end of a process that was let go before, too. */
  async release(): Promise<void> {
    clearTimeout(this.#expiryTimer)
    const releasing = this.#loaded?.process.release()
    this.#loaded = undefined
    if (releasing) this.#releasing = releasing
    await this.#releasing
    this.#onIdle()
  }

  /** Its process goes on for other apps, and for a while without any. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#expiryTimer)
    this.#loaded?.process.close()
    this.#loaded = undefined
  }

  async #runTask<T>(
    task: LoadedTask<T>,
    model: Model,
    load: ResolvedLoad,
    signal: AbortSignal,
    hasBegun: () => boolean,
  ): Promise<T | undefined> {
    const startedAt = performance.now()
    const wasLoaded = this.#loaded !== undefined
    const loaded = await this.#ensureLoaded(model, load, signal)
    if (!loaded) return undefined
    const loadMs = performance.now() - startedAt
    try {
      return await task(loaded, loadMs)
    } catch (error) {
      if (loaded.process.hasEnded) this.#onProcessEnd(loaded)
      // It had ended since the last call, unnoticed: this one has not begun, and gets a new process.
      if (!wasLoaded || hasBegun() || !loaded.process.hasEnded || loaded.process.hasCrashed || this.#closed)
        throw error
      return this.#runTask(task, model, load, signal, hasBegun)
    }
  }

  /** The process of this model, started where it does not run. Nothing when the caller has left. */
  async #ensureLoaded(
    model: Model,
    load: ResolvedLoad,
    signal: AbortSignal,
  ): Promise<LoadedProcess | undefined> {
    if (signal.aborted) return undefined
    const loaded = await this.#ensureStarted(model, load, signal)
    if (!loaded) return undefined
    loaded.keepAlive = load.keepAlive ?? loaded.keepAlive
    loaded.isUnwanted = false
    try {
      // The load goes on when its first caller leaves: the next one wants it, too.
      const ready = await raceAbort(loaded.process.ready, signal)
      if (ready === undefined) return undefined
      this.#failures.onLoaded(loaded.fingerprint)
      return loaded
    } catch (error) {
      // One that has no room is nothing that would be better after a while.
      this.#onProcessEnd(loaded, LlmError.from(error).code === 'upstream')
      throw error
    }
  }

  /** As it is loaded, where that is enough: whoever says nothing gets no less than he would alone. */
  #resolveContextSize(load: LoadOptions): number {
    const loaded = this.isLoaded ? this.#loaded : undefined
    const size = load.contextSize ?? Math.max(this.#settings.contextSize, loaded?.contextSize ?? 0)
    const actual = loaded?.process.footprint?.contextSize ?? Number.POSITIVE_INFINITY
    // The model was made for less: it has all that there is.
    return loaded && actual < loaded.contextSize && actual <= size ? loaded.contextSize : size
  }

  /** All calls inside want the same: whoever comes first starts it. */
  async #ensureStarted(
    model: Model,
    load: ResolvedLoad,
    signal: AbortSignal,
  ): Promise<LoadedProcess | undefined> {
    const { name, fingerprint } = load.identity
    if (this.#isRunning(fingerprint)) return this.#loaded
    this.#failures.check(fingerprint, model.name)
    // A process that runs was started for a file that was found good.
    if (!this.#settings.runtimeDir.hasProcess(name)) await this.#settings.check(model)
    // Who has left must not cost the others their model.
    if (signal.aborted) return undefined
    this.#starting ??= this.#startProcess(model, load).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #startProcess(model: Model, { contextSize, identity }: ResolvedLoad): Promise<LoadedProcess> {
    const { name, fingerprint } = identity
    if (this.#loaded && this.#isRunning(fingerprint)) return this.#loaded
    await this.release()
    if (this.#closed) throw engineClosed()
    const { load, keepAlive, processFile, runtimeDir, isPooling, warn } = this.#settings
    const process = new ProcessClient({
      file: processFile,
      runtimeDir,
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
      isPooling: () => isPooling(model),
      onMemoryWait: () => this.#releaseIfIdle(),
    })
    process.ready.then(
      ({ notes }) => notes.forEach(warn),
      () => {}, // Whoever waits for it hears of it.
    )
    this.#loaded = {
      ...{ name: model.name, digest: model.digest, fingerprint, contextSize, process, keepAlive },
      ...{ cachedUntil: 0, isUnwanted: false },
    }
    return this.#loaded
  }

  #isRunning(fingerprint: string): boolean {
    return this.isLoaded && this.#loaded?.fingerprint === fingerprint
  }

  #releaseIfIdle(): void {
    const loaded = this.#loaded
    if (this.#activeCalls > 0 || this.#closed) return
    this.#onIdle()
    if (!loaded) return
    // Room is not made for somebody who has left.
    const keepAlive =
      loaded.isUnwanted || loaded.process.isWaitingForMemory ? 0 : getKeepAliveMs(loaded, Date.now())
    if (keepAlive !== 'forever') this.#releaseAfter(keepAlive)
  }

  /** By a timer even when there is no time left: the next in line may want it, and stops it. */
  #releaseAfter(ms: number): void {
    clearTimeout(this.#expiryTimer)
    const waitMs = Math.min(ms, maxTimerMs)
    const onTime = (): void => {
      if (ms > waitMs) this.#releaseAfter(ms - waitMs)
      else void this.release()
    }
    this.#expiryTimer = setTimeout(onTime, waitMs).unref()
  }

  /** However many calls it had: once. */
  #onProcessEnd(loaded: LoadedProcess, isFailure = true): void {
    if (this.#loaded !== loaded) return
    this.#loaded = undefined
    if (!isFailure) return
    if (loaded.process.hasCrashed && !loaded.process.footprint) this.#failures.onLoadCrash(loaded.fingerprint)
    this.#failures.onEnd(loaded.fingerprint)
  }

  #resolveLoad(model: Model, load: LoadOptions): ResolvedLoad {
    const contextSize = this.#resolveContextSize(load)
    return { ...load, contextSize, identity: identifyProcess(model, { ...this.#settings.load, contextSize }) }
  }
}

export const engineClosed = (): LlmError => new LlmError('overloaded', 'The engine was closed.')

/** Nothing once the signal has aborted. Leaves nothing behind on it: it may be one that lives long. */
async function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let onAbort = (): void => {}
  const aborted = new Promise<undefined>((resolve) => {
    onAbort = () => resolve(undefined)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Who keeps it alive for no time wants it gone, whatever it holds. */
const getKeepAliveMs = ({ keepAlive, cachedUntil }: LoadedProcess, time: number): number | 'forever' =>
  keepAlive === 'forever' || keepAlive === 0 ? keepAlive : Math.max(keepAlive, cachedUntil - time)

/** No later than dates go. */
const toExpiryDate = (time: number, keepAlive: number | 'forever'): Date | 'never' =>
  keepAlive === 'forever' ? 'never' : new Date(Math.min(time + keepAlive, 8.64e15))
