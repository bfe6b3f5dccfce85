/**
 * Which weights this app has loaded, each once for all names that share them: so many at most. Where one more is wanted, the one that was not used longest
 * has to go, but not before its answers have ended.
 */
import type { LlmError } from '../../../errors.ts'
import { engineClosed, LocalModel, type Setting } from '../local-model.ts'
import { Failures } from './failures.ts'

interface Waiting {
  readonly key: string
  enter(model: LocalModel): void
  refuse(error: LlmError): void
}

export class LoadedModels {
  readonly failures = new Failures()
  readonly #setting: Setting
  readonly #most: number
  readonly #models = new Map<string, LocalModel>()
  /** It takes nobody in any more, and goes for somebody who waits. */
  #leaving: LocalModel | undefined
  #waiting: readonly Waiting[] = []
  #closed = false

  constructor(setting: Setting, most: number) {
    this.#setting = setting
    this.#most = most
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
    work: (model: LocalModel) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw engineClosed()
      if (signal.aborted) return resolve(undefined)
      const leave = (): void => {
        this.#without(waiting)
        resolve(undefined)
        // Nobody has to go for this one any more.
        this.#settle()
      }
      const waiting: Waiting = {
        key,
        enter: (model) => {
          signal.removeEventListener('abort', leave)
          // At once: the place must not look empty to anybody.
          work(model).then(resolve, reject)
        },
        refuse: (error) => {
          signal.removeEventListener('abort', leave)
          reject(error)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting = [...this.#waiting, waiting]
      this.#settle()
    })
  }

  close(): void {
    this.#closed = true
    for (const { refuse } of this.#waiting) refuse(engineClosed())
    for (const model of this.#models.values()) model.close()
    this.#waiting = []
    this.#models.clear()
  }

  /** In order of arrival; who waits for a place does not hold up those whose model has one. */
  #settle(): void {
    if (this.#closed) return
    for (const waiting of this.#waiting) {
      const model = this.#placeFor(waiting.key)
      if (!model) continue
      this.#without(waiting)
      waiting.enter(model)
    }
    if (this.#waiting.some(({ key }) => !this.#models.has(key))) {
      this.#leaving ??= this.#leastUseful()
      if (this.#leaving?.isBusy === false) void this.#leaving.letGo()
    } else if (this.#leaving?.isLoaded) {
      this.#leaving = undefined
      if (this.#waiting.length > 0) this.#settle()
    }
  }

  /** The place that it has, or an empty one. */
  #placeFor(key: string): LocalModel | undefined {
    const model = this.#models.get(key)
    if (model) return model === this.#leaving ? undefined : model
    if (this.#models.size >= this.#most) return undefined
    const added = new LocalModel(key, this.#setting, this.failures, () => this.#onRest(added))
    this.#models.set(key, added)
    return added
  }

  /** Idle ones first. */
  #leastUseful(): LocalModel | undefined {
    const order = (a: LocalModel, b: LocalModel): number =>
      Number(a.isBusy) - Number(b.isBusy) || a.usedAt - b.usedAt
    return [...this.#models.values()].sort(order)[0]
  }

  #onRest(model: LocalModel): void {
    if (!model.isBusy && !model.isLoaded && this.#models.get(model.key) === model) {
      this.#models.delete(model.key)
      if (this.#leaving === model) this.#leaving = undefined
    }
    this.#settle()
  }

  #without(waiting: Waiting): void {
    this.#waiting = this.#waiting.filter((one) => one !== waiting)
  }
}
