/**
 * The models that this app has loaded, up to a maximum number. Models with the same weights count as one. At
 * the maximum, the least recently used model is evicted after its running calls, but not before it has served
 * for a minimum time. Otherwise, one caller who takes turns among more models than the maximum could make all
 * callers wait for loads.
 */
import { WaitQueue } from '../../../util/wait-queue.ts'
import type { LocalModelSettings } from '../load-settings.ts'
import { engineClosed, LocalModel } from '../local-model.ts'
import { Failures } from './failures.ts'

interface QueuedUse {
  readonly key: string
  run(model: LocalModel): void
}

export class LoadedModels {
  readonly failures = new Failures()
  readonly #settings: LocalModelSettings
  readonly #maxModels: number
  readonly #models = new Map<string, LocalModel>()
  /**
   * Model that is being evicted. It admits no more calls, since a call for another model waits for the
   * eviction.
   */
  #evicting: LocalModel | undefined
  readonly #queue = new WaitQueue<QueuedUse>({
    select: (waiting) => this.#select(waiting),
    admit: ({ key, run }) => run(this.#models.get(key) as LocalModel),
  })
  /** Fires when the next model to evict has served for its minimum time, while a call waits for that. */
  #pumpTimer: NodeJS.Timeout | undefined
  #closed = false

  constructor(settings: LocalModelSettings, maxModels: number) {
    this.#settings = settings
    this.#maxModels = maxModels
  }

  get(key: string): LocalModel | undefined {
    return this.#models.get(key)
  }

  /** Includes models that are still loading. */
  all(): readonly LocalModel[] {
    return [...this.#models.values()]
  }

  /**
   * Waits until there is room for the model, then runs the task. Resolves with `undefined` if the signal
   * aborts first. Throws an `LlmError` `overloaded` once the engine is closed.
   */
  async use<T>(
    key: string,
    signal: AbortSignal,
    task: (model: LocalModel) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    if (this.#closed) throw engineClosed()
    let result: Promise<T | undefined> | undefined
    // Starts the task on admission, so that the model counts as busy at once.
    const run = (model: LocalModel): void => {
      result = task(model)
    }
    await this.#queue.wait({ key, run }, signal)
    return result
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#pumpTimer)
    this.#queue.rejectAll(engineClosed())
    for (const model of this.#models.values()) model.close()
    this.#models.clear()
  }

  /**
   * Admits calls in order of arrival. A call whose model is already loaded overtakes calls that wait for
   * room.
   */
  #select(waiting: readonly QueuedUse[]): QueuedUse | undefined {
    clearTimeout(this.#pumpTimer)
    const admissible = waiting.find(({ key }) => this.#findOrAddModel(key))
    if (admissible) return admissible
    if (waiting.some(({ key }) => !this.#models.has(key))) {
      this.#evicting ??= this.#findEvictable()
      if (this.#evicting?.isBusy === false) void this.#evicting.release()
      return undefined
    }
    if (!this.#evicting?.isLoaded) return undefined
    // No call waits for room any more.
    this.#evicting = undefined
    return waiting[0]
  }

  /**
   * Returns the model, and adds it if it is new. Returns `undefined` if there is no room for a new model, or
   * if the model is being evicted.
   */
  #findOrAddModel(key: string): LocalModel | undefined {
    const model = this.#models.get(key)
    if (model) return model === this.#evicting ? undefined : model
    if (this.#models.size >= this.#maxModels) return undefined
    const added = new LocalModel(key, this.#settings, this.failures, () => this.#onModelIdle(added))
    this.#models.set(key, added)
    return added
  }

  /**
   * Prefers idle models, then the least recently used model. Returns `undefined` if that one must still serve.
   * Until then, its calls are admitted. No model with more recent calls is evicted in its place.
   */
  #findEvictable(): LocalModel | undefined {
    const byLeastUseful = (a: LocalModel, b: LocalModel): number =>
      Number(a.isBusy) - Number(b.isBusy) || a.lastUsedAt - b.lastUsedAt
    const [model] = [...this.#models.values()].sort(byLeastUseful)
    const delayMs = model?.evictionDelayMs ?? 0
    if (delayMs <= 0) return model
    this.#pumpTimer = setTimeout(() => this.#queue.pump(), Math.ceil(delayMs))
    return undefined
  }

  #onModelIdle(model: LocalModel): void {
    if (!model.isBusy && !model.isLoaded && this.#models.get(model.key) === model) {
      this.#models.delete(model.key)
      if (this.#evicting === model) this.#evicting = undefined
    }
    this.#queue.pump()
  }
}
