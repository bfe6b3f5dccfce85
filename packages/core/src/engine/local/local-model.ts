/**
 * One model of an app. The first call starts the model process, or connects to a running one. A call with
 * other load settings replaces the process. After the keep-alive, the app releases the process.
 */
import { resolve } from 'node:path'
import { LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import { unlessAborted } from '../../util/abort.ts'
import type { LoadedModel } from '../engine.ts'
import type { LoadOptions } from '../request.ts'
import { identifyProcess, type ProcessIdentity } from './identity.ts'
import type { LoadConfig } from './ipc/process-config.ts'
import type { RuntimeDir } from './ipc/runtime-dir.ts'
import type { Failures } from './supervisor/failures.ts'
import { LoadGate } from './supervisor/load-gate.ts'
import { ProcessClient } from './supervisor/process-client.ts'

/** Load settings of the app. A call may override some of them. */
export interface LocalModelSettings {
  readonly load: Omit<LoadConfig, 'modelPath' | 'modelName' | 'fingerprint' | 'contextSize' | 'adapters'>
  readonly contextSize: number
  /** How long an unused model stays loaded, in milliseconds. */
  readonly keepAlive: number | 'forever'
  /** How long a loaded model serves before a call may reload it with other settings, in milliseconds. */
  readonly reloadCooldown: number
  readonly processFile: string
  readonly runtimeDir: RuntimeDir
  /** Checks the model file. Throws an `LlmError` `upstream` for a file that would crash the native code. */
  readonly check: (model: Model) => Promise<void>
  /** Whether the model is for embedding or reranking. */
  readonly isPooling: (model: Model) => Promise<boolean>
  /** Called when the model could not be loaded with all of its settings. */
  readonly warn: (message: string) => void
}

export interface LoadedProcess {
  /** Name under which the model was loaded. Other names may refer to the same weights. */
  readonly name: string
  readonly digest: string
  readonly fingerprint: string
  readonly contextSize: number
  readonly process: ProcessClient
  /** Keep-alive of the last call that set one, in milliseconds. */
  keepAlive: number | 'forever'
  /** Time when the load was complete, on the clock of `performance.now()`. */
  readyAt: number | undefined
  /** Time when the last breakpoint in the prompt cache expires, in milliseconds since 1970. */
  cachedUntil: number
  /** Whether the process is released as soon as it is idle. */
  isUnwanted: boolean
}

/** Runs on a loaded model. `loadMs` is how long the call waited for the load. */
export type LoadedTask<T> = (loaded: LoadedProcess, loadMs: number) => Promise<T>

type ResolvedLoad = LoadOptions & { readonly contextSize: number; readonly identity: ProcessIdentity }

/** Longest delay of a Node.js timer. */
const maxTimerMs = 2 ** 31 - 1

export class LocalModel {
  readonly key: string
  readonly #settings: LocalModelSettings
  readonly #failures: Failures
  readonly #onIdle: () => void
  readonly #loadGate = new LoadGate()
  #loaded: LoadedProcess | undefined
  #expiryTimer: NodeJS.Timeout | undefined
  /** Pending release of the previous process. */
  #releasing: Promise<void> | undefined
  #starting: Promise<LoadedProcess> | undefined
  #activeCalls = 0
  #lastUsedAt = Date.now()
  #closed = false

  /**
   * @param key identifies the weights, see `weightsKeyOf`
   * @param onIdle called after the last call, and when the process is released
   */
  constructor(key: string, settings: LocalModelSettings, failures: Failures, onIdle: () => void) {
    this.key = key
    this.#settings = settings
    this.#failures = failures
    this.#onIdle = onIdle
  }

  /** Whether calls run or are queued. */
  get isBusy(): boolean {
    return this.#activeCalls > 0
  }

  get isLoaded(): boolean {
    return this.#loaded !== undefined && !this.#loaded.process.hasEnded
  }

  /** Time when the last call ended, in milliseconds since 1970. While calls run, the current time. */
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
   * Waits until the model is loaded as the call needs it, then runs the task. Resolves with `undefined` if
   * the signal aborts first.
   * @param hasBegun whether the call has emitted output, so that it cannot be repeated
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
        const contextSize = this.#resolveContextSize(load)
        // The gate may ask often while the call waits.
        if (resolvedLoad?.contextSize !== contextSize)
          resolvedLoad = this.#resolveLoad(model, load, contextSize)
        return resolvedLoad.identity.fingerprint
      }
      const reloadDelayMs = (): number => this.#reloadDelayMs(load)
      const leaveGate = await this.#loadGate.enter(signal, { chooseKey, reloadDelayMs })
      if (!leaveGate || !resolvedLoad) return undefined
      try {
        // The load settings are chosen when the call enters the gate. If the process ends, all calls inside
        // the gate can therefore share the next process.
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

  /**
   * Releases the model when its running calls have ended. A call that arrives before that cancels the
   * release.
   */
  async unload(): Promise<void> {
    if (!this.#loaded) return
    this.#loaded.isUnwanted = true
    if (this.#activeCalls === 0) await this.release()
  }

  /** Releases the process. Also waits for a release that is already in progress. */
  async release(): Promise<void> {
    clearTimeout(this.#expiryTimer)
    const releasing = this.#loaded?.process.release()
    this.#loaded = undefined
    if (releasing) this.#releasing = releasing
    await this.#releasing
    this.#onIdle()
  }

  /** Disconnects from the process, which keeps serving other apps. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#expiryTimer)
    this.#loaded?.process.close()
    this.#loaded = undefined
    this.#loadGate.pump()
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
      // The process may have ended unnoticed before this call. In that case, a call without output gets a new
      // process.
      if (!wasLoaded || hasBegun() || !loaded.process.hasEnded || loaded.process.hasCrashed || this.#closed)
        throw error
      return this.#runTask(task, model, load, signal, hasBegun)
    }
  }

  /**
   * Starts the process if needed and waits for the load. Resolves with `undefined` if the signal aborts
   * first.
   */
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
      // If this caller aborts, the load continues for the next caller.
      const ready = await unlessAborted(loaded.process.ready, signal)
      if (ready === undefined) return undefined
      this.#failures.onLoaded(loaded.fingerprint)
      return loaded
    } catch (error) {
      // Only the error code `upstream` counts as a failure. Too little memory, for example, has another code.
      this.#onProcessEnd(loaded, LlmError.from(error).code === 'upstream')
      throw error
    }
  }

  /**
   * How long the loaded model must still serve before this call may reload it, in milliseconds. A call without
   * a context size need not wait: it reloads the model only if another call has loaded a smaller context than
   * the default.
   */
  #reloadDelayMs({ contextSize }: LoadOptions): number {
    if (contextSize === undefined) return 0
    const readyAt = this.isLoaded ? this.#loaded?.readyAt : undefined
    if (readyAt === undefined) return 0
    return Math.max(0, readyAt + this.#settings.reloadCooldown - performance.now())
  }

  /**
   * Returns the context size to load. A call without a size gets the default of the Modelfile or the app, or
   * the loaded size if that is larger.
   */
  #resolveContextSize(load: LoadOptions): number {
    const loaded = this.isLoaded ? this.#loaded : undefined
    const { defaultContextSize = this.#settings.contextSize } = load
    const size = load.contextSize ?? Math.max(defaultContextSize, loaded?.contextSize ?? 0)
    const actual = loaded?.process.footprint?.contextSize ?? Number.POSITIVE_INFINITY
    // The model was trained for a smaller context, so it is already loaded at its maximum.
    return loaded && actual < loaded.contextSize && actual <= size ? loaded.contextSize : size
  }

  /**
   * Returns the running process, or starts one. Only the first caller starts it, since all calls inside the
   * gate need the same load settings.
   */
  async #ensureStarted(
    model: Model,
    load: ResolvedLoad,
    signal: AbortSignal,
  ): Promise<LoadedProcess | undefined> {
    const { name, fingerprint } = load.identity
    if (this.#isRunning(fingerprint)) return this.#loaded
    this.#failures.check(fingerprint, model.name)
    // If the process is running, its model file has already passed the check.
    if (!this.#settings.runtimeDir.hasProcess(name)) await this.#settings.check(model)
    // An aborted call must not replace the model that other calls use.
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
      onWarning: warn,
    })
    const loaded: LoadedProcess = {
      ...{ name: model.name, digest: model.digest, fingerprint, contextSize, process, keepAlive },
      ...{ readyAt: undefined, cachedUntil: 0, isUnwanted: false },
    }
    this.#loaded = loaded
    process.ready.then(
      ({ notes }) => {
        notes.forEach(warn)
        loaded.readyAt = performance.now()
        this.#loadGate.pump()
      },
      () => {}, // Each caller handles the error.
    )
    return loaded
  }

  #isRunning(fingerprint: string): boolean {
    return this.isLoaded && this.#loaded?.fingerprint === fingerprint
  }

  #releaseIfIdle(): void {
    const loaded = this.#loaded
    if (this.#activeCalls > 0 || this.#closed) return
    this.#onIdle()
    if (!loaded) return
    // A load that waits for memory is abandoned when its last caller leaves.
    const keepAlive =
      loaded.isUnwanted || loaded.process.isWaitingForMemory ? 0 : getKeepAliveMs(loaded, Date.now())
    if (keepAlive !== 'forever') this.#releaseAfter(keepAlive)
  }

  /** Uses a timer even for 0 ms, so that a queued call can cancel the release. */
  #releaseAfter(ms: number): void {
    clearTimeout(this.#expiryTimer)
    const waitMs = Math.min(ms, maxTimerMs)
    const onTime = (): void => {
      if (ms > waitMs) this.#releaseAfter(ms - waitMs)
      else void this.release()
    }
    this.#expiryTimer = setTimeout(onTime, waitMs).unref()
  }

  /** Each call of an ended process reports the end. Only the first report counts. */
  #onProcessEnd(loaded: LoadedProcess, isFailure = true): void {
    if (this.#loaded !== loaded) return
    this.#loaded = undefined
    if (!isFailure) return
    if (loaded.process.hasCrashed && !loaded.process.footprint) this.#failures.onLoadCrash(loaded.fingerprint)
    this.#failures.onEnd(loaded.fingerprint)
  }

  #resolveLoad(model: Model, load: LoadOptions, contextSize: number): ResolvedLoad {
    return { ...load, contextSize, identity: identifyProcess(model, { ...this.#settings.load, contextSize }) }
  }
}

export const engineClosed = (): LlmError => new LlmError('overloaded', 'The engine was closed.')

/** A keep-alive of 0 releases the model even when its prompt cache holds state. */
const getKeepAliveMs = ({ keepAlive, cachedUntil }: LoadedProcess, time: number): number | 'forever' =>
  keepAlive === 'forever' || keepAlive === 0 ? keepAlive : Math.max(keepAlive, cachedUntil - time)

/** Caps the time at the latest valid `Date`. */
const toExpiryDate = (time: number, keepAlive: number | 'forever'): Date | 'never' =>
  keepAlive === 'forever' ? 'never' : new Date(Math.min(time + keepAlive, 8.64e15))
