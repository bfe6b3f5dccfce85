/**
 * The weights that this app has loaded, once for all names that share them. When every slot is taken, the least recently used
 * model is evicted after its running calls have ended.
 */
import { WaitQueue } from '../../../util/wait-queue.ts'
import { engineClosed, LocalModel, type LocalModelSettings } from '../local-model.ts'
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
  /** Admits no calls any more: a call for another model waits for its slot. */
  #evicting: LocalModel | undefined
  readonly #queue = new WaitQueue<QueuedUse>({
    select: (waiting) => this.#select(waiting),
    admit: ({ key, run }) => run(this.#models.get(key) as LocalModel),
  })
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

  /** Waits for a slot and runs the task. Resolves with `undefined` when the signal aborts first. Throws `overloaded`. */
  async use<T>(
    key: string,
    signal: AbortSignal,
    task: (model: LocalModel) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    if (this.#closed) throw engineClosed()
    let result: Promise<T | undefined> | undefined
    // The task starts on admission, so that its slot counts as busy at once.
    const run = (model: LocalModel): void => {
      result = task(model)
    }
    await this.#queue.wait({ key, run }, signal)
    return result
  }

  close(): void {
    this.#closed = true
    this.#queue.rejectAll(engineClosed())
    for (const model of this.#models.values()) model.close()
    this.#models.clear()
  }

  /** In order of arrival, but a call whose model has a slot overtakes those that wait for one. */
  #select(waiting: readonly QueuedUse[]): QueuedUse | undefined {
    const admissible = waiting.find(({ key }) => this.#findOrAddModel(key))
    if (admissible) return admissible
    if (waiting.some(({ key }) => !this.#models.has(key))) {
      this.#evicting ??= this.#findEvictionCandidate()
      if (this.#evicting?.isBusy === false) void this.#evicting.release()
      return undefined
    }
    if (!this.#evicting?.isLoaded) return undefined
    // No call waits for a slot any more.
    this.#evicting = undefined
    return waiting[0]
  }

  /** Takes a free slot for a model that has none; `undefined` when all are taken or the model is evicted. */
  #findOrAddModel(key: string): LocalModel | undefined {
    const model = this.#models.get(key)
    if (model) return model === this.#evicting ? undefined : model
    if (this.#models.size >= this.#maxModels) return undefined
    const added = new LocalModel(key, this.#settings, this.failures, () => this.#onModelIdle(added))
    this.#models.set(key, added)
    return added
  }

  /** Idle models first, then the least recently used. */
  #findEvictionCandidate(): LocalModel | undefined {
    const byLeastUseful = (a: LocalModel, b: LocalModel): number =>
      Number(a.isBusy) - Number(b.isBusy) || a.lastUsedAt - b.lastUsedAt
    return [...this.#models.values()].sort(byLeastUseful)[0]
  }

  #onModelIdle(model: LocalModel): void {
    if (!model.isBusy && !model.isLoaded && this.#models.get(model.key) === model) {
      this.#models.delete(model.key)
      if (this.#evicting === model) this.#evicting = undefined
    }
    this.#queue.pump()
  }
}
