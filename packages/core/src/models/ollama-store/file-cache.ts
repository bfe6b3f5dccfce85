/** Caches the result of inspecting a model file until the file changes. */

import type { Model } from '../model.ts'
import { ByteCache } from './byte-cache.ts'

export class FileCache<T> {
  readonly #inspect: (model: Model) => Promise<T>
  readonly #results = new ByteCache<T>()

  constructor(inspect: (model: Model) => Promise<T>) {
    this.#inspect = inspect
  }

  /** Concurrent calls share one inspection. Failures are not cached. */
  get(model: Model): Promise<T> {
    return this.#results.get(`${model.digest} ${model.path}`, () => this.#inspect(model))
  }
}
