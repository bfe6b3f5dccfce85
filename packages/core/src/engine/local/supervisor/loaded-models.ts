/**
 * The models that this app has loaded, up to a maximum number. Models with the same weights count as one. At
 * the maximum, the least recently used model is evicted after its running calls, but not before it has served
 * for a minimum time. Otherwise, one caller who takes turns among more models than the maximum could make all
 * callers wait for loads. A background call evicts no model that foreground calls use.
 */
import { WaitQueue } from '../../../util/wait-queue.ts'
import type { LocalModelSettings } from '../load-settings.ts'
import { engineClosed, LocalModel } from '../local-model.ts'
import { Failures } from './failures.ts'

/** How long a model stays for the next foreground call before a background call may evict it, in ms. */
const keptForForegroundMs = 60_000

interface QueuedUse {
  readonly key: string
  readonly isBackground: boolean
  run(model: LocalModel): void
}

export class LoadedModels {
  readonly failures = new Failures()
  readonly #settings: LocalModelSettings
  readonly #maxModels: number
  readonly #models = new Map<string, LocalModel>()
  /** The running foreground calls of each model, and when the last one has ended, by `performance.now()`. */
  readonly #foreground = new Map<string, { calls: number; endedAt: number }>()
  /**
   * Model that is being evicted. It admits no more calls, since a call for another model waits for the
   * eviction.
   */
  #evicting: LocalModel | undefined
  /** Whether the eviction is for a background call. */
  #isEvictingForBackground = false
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
    isBackground = false,
  ): Promise<T | undefined> {
    if (this.#closed) throw engineClosed()
    let result: Promise<T | undefined> | undefined
    // Starts the task on admission, so that the model counts as busy at once.
    const run = (model: LocalModel): void => {
      result = isBackground ? task(model) : this.#runForeground(key, () => task(model))
    }
    await this.#queue.wait({ key, isBackground, run }, signal)
    return result
  }

  async #runForeground<T>(key: string, task: () => Promise<T>): Promise<T> {
    const use = this.#foreground.get(key) ?? { calls: 0, endedAt: 0 }
    this.#foreground.set(key, use)
    use.calls++
    try {
      return await task()
    } finally {
      use.calls--
      use.endedAt = performance.now()
    }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#pumpTimer)
    this.#queue.rejectAll(engineClosed())
    for (const model of this.#models.values()) model.close()
    this.#models.clear()
  }

  /**
   * Admits calls in order of arrival, background calls last. A call whose model is already loaded overtakes calls
   * that wait for room.
   */
  #select(all: readonly QueuedUse[]): QueuedUse | undefined {
    clearTimeout(this.#pumpTimer)
    const waiting = all.toSorted((a, b) => Number(a.isBackground) - Number(b.isBackground))
    const wantsBack = ({ key, isBackground }: QueuedUse): boolean =>
      !isBackground && key === this.#evicting?.key
    // The eviction has not begun while calls run.
    if (this.#isEvictingForBackground && this.#evicting?.isBusy && waiting.some(wantsBack))
      this.#evicting = undefined
    const admissible = waiting.find(({ key }) => this.#findOrAddModel(key))
    if (admissible) return admissible
    const next = waiting.find(({ key }) => !this.#models.has(key))
    if (next) {
      if (!this.#evicting) {
        this.#evicting = this.#findEvictable(next)
        this.#isEvictingForBackground = next.isBackground
      }
      if (this.#evicting?.isBusy === false) void this.#evicting.release(true)
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
   * Prefers models without foreground calls for a background call, then idle models, then the least recently used
   * model. Returns `undefined` if that one must still serve. Until then, its calls are admitted. No model with more
   * recent calls is evicted in its place.
   */
  #findEvictable({ isBackground }: QueuedUse): LocalModel | undefined {
    const keptMsOf = (model: LocalModel): number => (isBackground ? this.#keptMs(model) : 0)
    const byLeastUseful = (a: LocalModel, b: LocalModel): number =>
      keptMsOf(a) - keptMsOf(b) || Number(a.isBusy) - Number(b.isBusy) || a.lastUsedAt - b.lastUsedAt
    const [model] = [...this.#models.values()].sort(byLeastUseful)
    const delayMs = model ? Math.max(model.evictionDelayMs, keptMsOf(model)) : 0
    if (delayMs <= 0) return model
    this.#pumpTimer = setTimeout(() => this.#queue.pump(), Math.ceil(delayMs))
    return undefined
  }

  /** How long the model stays for foreground calls, in ms. */
  #keptMs({ key }: LocalModel): number {
    const use = this.#foreground.get(key)
    if (!use) return 0
    if (use.calls > 0) return keptForForegroundMs
    return Math.max(0, use.endedAt + keptForForegroundMs - performance.now())
  }

  #onModelIdle(model: LocalModel): void {
    if (!model.isBusy && !model.isLoaded && this.#models.get(model.key) === model) {
      this.#models.delete(model.key)
      this.#foreground.delete(model.key)
      if (this.#evicting === model) this.#evicting = undefined
    }
    this.#queue.pump()
  }
}
