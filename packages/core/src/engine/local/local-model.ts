/**
 * One model of an app. The first call starts the model process, or connects to a running one. A call with
 * other load settings replaces the process. After the keep-alive, the app releases the process.
 */
import { LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import { unlessAborted } from '../../util/abort.ts'
import type { LoadedModel } from '../engine.ts'
import type { LoadOptions } from '../request.ts'
import { ExpiryTimer, getKeepAliveMs, toExpiryDate } from './keep-alive.ts'
import {
  chooseModelSettings,
  getReloadDelayMs,
  type LocalModelSettings,
  type ResolvedLoad,
  resolveContextSize,
  resolveLoad,
} from './load-settings.ts'
import type { CallObserver, LoadedProcess, LoadedTask } from './loaded-process.ts'
import { startProcess } from './start-process.ts'
import type { Failures } from './supervisor/failures.ts'
import { LoadGate } from './supervisor/load-gate.ts'
import type { ProcessClient } from './supervisor/process-client.ts'

export class LocalModel {
  readonly key: string
  readonly #settings: LocalModelSettings
  readonly #failures: Failures
  readonly #onIdle: () => void
  readonly #loadGate = new LoadGate()
  #loaded: LoadedProcess | undefined
  readonly #expiryTimer = new ExpiryTimer(() => void this.release())
  /** Pending release of the previous process. */
  #releasing: Promise<void> | undefined
  #starting: Promise<LoadedProcess> | undefined
  #activeCalls = 0
  #lastUsedAt = Date.now()
  /** Time when the first load was complete, on the clock of `performance.now()`. */
  #servingSince: number | undefined
  /** Whether the last attempt to load failed. */
  #hasFailedToLoad = false
  #closed = false

  /**
   * @param key identifies the weights, see `weightsKeyOf`
   * @param onIdle called after the last call, when the process is released, and when a load fails or waits for
   *   memory
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
    return this.#running !== undefined
  }

  /** The running process, whether its model is loaded or not. */
  get process(): ProcessClient | undefined {
    return this.#running?.process
  }

  /**
   * How long the model must still stay before a call of another model may evict it, in milliseconds. While
   * calls wait for its first load, the whole cooldown. A reload does not make it stay longer.
   */
  get evictionDelayMs(): number {
    const { reloadCooldown } = this.#settings
    if (this.#servingSince !== undefined)
      return Math.max(0, this.#servingSince + reloadCooldown - performance.now())
    const canLoadSoon = !this.#hasFailedToLoad && !this.#loaded?.process.isWaitingForMemory
    return this.isBusy && canLoadSoon ? reloadCooldown : 0
  }

  /** Time when the last call ended, in milliseconds since 1970. While calls run, the current time. */
  get lastUsedAt(): number {
    return this.#activeCalls > 0 ? Date.now() : this.#lastUsedAt
  }

  get loaded(): LoadedModel | undefined {
    const loaded = this.#running
    if (!loaded) return undefined
    const { name, digest, process, modelSettings } = loaded
    const hasSettings = Object.keys(modelSettings).length > 0
    const expiresAt = toExpiryDate(this.lastUsedAt, getKeepAliveMs(loaded, this.lastUsedAt))
    const {
      contextSize = 0,
      sizeBytes = 0,
      gpuBytes = 0,
      gpuLayers = 0,
      notes = [],
    } = process.footprint ?? {}
    const state = process.footprint ? 'ready' : 'loading'
    const size = { contextSize, sizeBytes, gpuBytes, gpuLayers }
    return {
      name,
      digest,
      state,
      processId: process.id,
      ...size,
      notes,
      activity: process.activity,
      expiresAt,
      ...(hasSettings && { settings: modelSettings }),
    }
  }

  /**
   * Waits until the model is loaded as the call needs it, then runs the task. Resolves with `undefined` if
   * the signal aborts first.
   */
  async use<T>(
    model: Model,
    load: LoadOptions,
    signal: AbortSignal,
    task: LoadedTask<T>,
    observer: CallObserver,
  ): Promise<T | undefined> {
    this.#activeCalls++
    this.#expiryTimer.stop()
    try {
      let resolvedLoad: ResolvedLoad | undefined
      const chooseKey = (): string => {
        const contextSize = resolveContextSize(load, this.#running, this.#settings)
        // The gate may ask often while the call waits.
        const modelSettings = chooseModelSettings(model, this.#running, this.#settings)
        if (resolvedLoad?.contextSize !== contextSize || resolvedLoad.modelSettings !== modelSettings)
          resolvedLoad = resolveLoad(model, load, contextSize, this.#settings, modelSettings)
        return resolvedLoad.identity.fingerprint
      }
      const reloadDelayMs = (): number => getReloadDelayMs(load, this.#running, this.#settings)
      const leaveGate = await this.#loadGate.enter(signal, { chooseKey, reloadDelayMs })
      if (!leaveGate || !resolvedLoad) return undefined
      try {
        // The load settings are chosen when the call enters the gate. If the process ends, all calls inside
        // the gate can therefore share the next process.
        return await this.#runTask(task, model, resolvedLoad, signal, observer)
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

  /** Deletes the KV states of a tenant, and returns their number. A process that has ended has none. */
  async deletePromptStates(tenant: string): Promise<number> {
    const process = this.#running?.process
    if (!process?.footprint) return 0
    try {
      return await process.deletePromptStates(tenant)
    } catch (error) {
      if (process.hasEnded) return 0
      throw error
    }
  }

  /**
   * Releases the process. Also waits for a release that is already in progress.
   *
   * @param isEvicted whether another model needs the place of this one
   */
  async release(isEvicted = false): Promise<void> {
    this.#expiryTimer.stop()
    const releasing = this.#loaded?.process.release(isEvicted)
    this.#loaded = undefined
    if (releasing) this.#releasing = releasing
    await this.#releasing
    this.#onIdle()
  }

  /** Disconnects from the process, which keeps serving other apps. */
  close(): void {
    this.#closed = true
    this.#expiryTimer.stop()
    this.#loaded?.process.close()
    this.#loaded = undefined
    this.#loadGate.pump()
  }

  async #runTask<T>(
    task: LoadedTask<T>,
    model: Model,
    load: ResolvedLoad,
    signal: AbortSignal,
    observer: CallObserver,
  ): Promise<T | undefined> {
    const startedAt = performance.now()
    const wasLoaded = this.#loaded !== undefined
    const loaded = await this.#ensureLoaded(model, load, signal, observer)
    if (!loaded) return undefined
    const loadMs = performance.now() - startedAt
    try {
      return await task(loaded, loadMs)
    } catch (error) {
      if (loaded.process.hasEnded) this.#onProcessEnd(loaded)
      // The process may have ended unnoticed before this call. In that case, a call without output gets a new
      // process.
      const { hasEnded, hasCrashed } = loaded.process
      if (!wasLoaded || observer.hasBegun() || !hasEnded || hasCrashed || this.#closed) throw error
      return this.#runTask(task, model, load, signal, observer)
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
    { onLoadProgress }: CallObserver,
  ): Promise<LoadedProcess | undefined> {
    if (signal.aborted) return undefined
    let loaded: LoadedProcess | undefined
    try {
      loaded = await this.#ensureStarted(model, load, signal)
      if (!loaded) return undefined
      loaded.keepAlive = load.keepAlive ?? loaded.keepAlive
      loaded.isUnwanted = false
      // If this caller aborts, the load continues for the next caller.
      const { process } = loaded
      const whenReady = onLoadProgress ? process.watchLoad(onLoadProgress) : process.ready
      const ready = await unlessAborted(whenReady, signal)
      if (ready === undefined) return undefined
      this.#failures.onLoaded(loaded.fingerprint)
      return loaded
    } catch (error) {
      // Only the error code `upstream` counts as a failure. Too little memory, for example, has another code. A
      // full disk or an update is no failure of the model, and each call reports it.
      const { code, details } = LlmError.from(error)
      if (loaded) this.#onProcessEnd(loaded, code === 'upstream' && !details.setup)
      this.#hasFailedToLoad = true
      this.#onIdle()
      throw error
    }
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
    const running = this.#findRunning(fingerprint)
    if (running) return running
    this.#failures.check(fingerprint, model.name)
    // If the process is running, its model file has already passed the check.
    if (!(await this.#settings.runtimeDir.hasProcess(name))) await this.#settings.check(model)
    // An aborted call must not replace the model that other calls use.
    if (signal.aborted) return undefined
    this.#starting ??= this.#replaceProcess(model, load).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #replaceProcess(model: Model, load: ResolvedLoad): Promise<LoadedProcess> {
    const running = this.#findRunning(load.identity.fingerprint)
    if (running) return running
    await this.release()
    if (this.#closed) throw engineClosed()
    this.#loaded = startProcess(model, load, this.#settings, {
      onMemoryWait: () => {
        this.#onIdle()
        this.#releaseIfIdle()
      },
      onReady: () => {
        this.#servingSince ??= performance.now()
        this.#hasFailedToLoad = false
        this.#loadGate.pump()
      },
    })
    return this.#loaded
  }

  get #running(): LoadedProcess | undefined {
    return this.#loaded?.process.hasEnded ? undefined : this.#loaded
  }

  #findRunning(fingerprint: string): LoadedProcess | undefined {
    return this.#running?.fingerprint === fingerprint ? this.#running : undefined
  }

  #releaseIfIdle(): void {
    const loaded = this.#loaded
    if (this.#activeCalls > 0 || this.#closed) return
    this.#onIdle()
    if (!loaded) return
    // A load that waits for memory is abandoned when its last caller leaves.
    const keepAlive =
      loaded.isUnwanted || loaded.process.isWaitingForMemory ? 0 : getKeepAliveMs(loaded, Date.now())
    if (keepAlive !== 'forever') this.#expiryTimer.start(keepAlive)
  }

  /** Each call of an ended process reports the end. Only the first report counts. */
  #onProcessEnd(loaded: LoadedProcess, isFailure = true): void {
    if (this.#loaded !== loaded) return
    this.#loaded = undefined
    if (!isFailure) return
    if (loaded.process.hasCrashed && !loaded.process.footprint) this.#failures.onLoadCrash(loaded.fingerprint)
    this.#failures.onEnd(loaded.fingerprint)
  }
}

export const engineClosed = (): LlmError => new LlmError('overloaded', 'The engine was closed.')
