/**
 * Which weights this app has loaded, each once for all names that share them: so many at most. Where one more is wanted, the one that was not used longest
 * has to go, but not before its answers have ended.
 */
import type { LlmError } from '../../../errors.ts'
import { engineClosed, LocalModel, type LocalModelSettings } from '../local-model.ts'
import { Failures } from './failures.ts'

interface QueuedUse {
  readonly key: string
  admit(model: LocalModel): void
  reject(error: LlmError): void
}

export class LoadedModels {
  readonly failures = new Failures()
  readonly #settings: LocalModelSettings
  readonly #maxModels: number
  readonly #models = new Map<string, LocalModel>()
  /** It takes nobody in any more, and goes for somebody who waits. */
  #evicting: LocalModel | undefined
  #queue: readonly QueuedUse[] = []
  #closed = false

  constructor(settings: LocalModelSettings, maxModels: number) {
    this.#settings = settings
    this.#maxModels = maxModels
  }

  /** @param key what is loaded */
  get(key: string): LocalModel | undefined {
    return this.#models.get(key)
  }

  /** Also those that are on their way into memory. */
  all(): readonly LocalModel[] {
    return [...this.#models.values()]
  }

  /** Waits until the model has a place. Nothing when the caller has left. Throws `overloaded`. */
  use<T>(
    key: string,
    signal: AbortSignal,
    task: (model: LocalModel) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw engineClosed()
      if (signal.aborted) return resolve(undefined)
      const onAbort = (): void => {
        this.#dequeue(queued)
        resolve(undefined)
        // Nobody has to go for this one any more.
        this.#admitQueued()
      }
      const queued: QueuedUse = {
        key,
        admit: (model) => {
          signal.removeEventListener('abort', onAbort)
          // At once: the place must not look empty to anybody.
          task(model).then(resolve, reject)
        },
        reject: (error) => {
          signal.removeEventListener('abort', onAbort)
          reject(error)
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#queue = [...this.#queue, queued]
      this.#admitQueued()
    })
  }

  close(): void {
    this.#closed = true
    for (const { reject } of this.#queue) reject(engineClosed())
    for (const model of this.#models.values()) model.close()
    this.#queue = []
    this.#models.clear()
  }

  /** In order of arrival; who waits for a place does not hold up those whose model has one. */
  #admitQueued(): void {
    if (this.#closed) return
    for (const waiting of this.#queue) {
      const model = this.#findOrAddModel(waiting.key)
      if (!model) continue
      this.#dequeue(waiting)
      waiting.admit(model)
    }
    if (this.#queue.some(({ key }) => !this.#models.has(key))) {
      this.#evicting ??= this.#findEvictionCandidate()
      if (this.#evicting?.isBusy === false) void this.#evicting.release()
    } else if (this.#evicting?.isLoaded) {
      this.#evicting = undefined
      if (this.#queue.length > 0) this.#admitQueued()
    }
  }

  /** The place that it has, or an empty one. */
  #findOrAddModel(key: string): LocalModel | undefined {
    const model = this.#models.get(key)
    if (model) return model === this.#evicting ? undefined : model
    if (this.#models.size >= this.#maxModels) return undefined
    const added = new LocalModel(key, this.#settings, this.failures, () => this.#onModelIdle(added))
    this.#models.set(key, added)
    return added
  }

  /** Idle ones first. */
  #findEvictionCandidate(): LocalModel | undefined {
    const byUsefulness = (a: LocalModel, b: LocalModel): number =>
      Number(a.isBusy) - Number(b.isBusy) || a.lastUsedAt - b.lastUsedAt
    return [...this.#models.values()].sort(byUsefulness)[0]
  }

  #onModelIdle(model: LocalModel): void {
    if (!model.isBusy && !model.isLoaded && this.#models.get(model.key) === model) {
      this.#models.delete(model.key)
      if (this.#evicting === model) this.#evicting = undefined
    }
    this.#admitQueued()
  }

  #dequeue(queued: QueuedUse): void {
    this.#queue = this.#queue.filter((one) => one !== queued)
  }
}
