/** What has been found out about files already: each is looked into once, until it changes. */

import type { Model } from '../model.ts'
import { ByteCache } from './byte-cache.ts'

export class FileCache<T> {
  readonly #inspect: (model: Model) => Promise<T>
  readonly #results = new ByteCache<T>()

  constructor(inspect: (model: Model) => Promise<T>) {
    this.#inspect = inspect
  }

  /** Who asks while the file is being read waits for the same read. A failure is not kept. */
  get(model: Model): Promise<T> {
    return this.#results.get(`${model.digest} ${model.path}`, () => this.#inspect(model))
  }
}
