/** What has been found out about files already: each is looked into once, until it changes. */

import type { Model } from '../store.ts'
import { ByteCache } from './byte-cache.ts'

export class FileCache<T> {
  readonly #find: (model: Model) => Promise<T>
  readonly #found = new ByteCache<T>()

  constructor(find: (model: Model) => Promise<T>) {
    this.#find = find
  }

  /** Who asks while the file is being read waits for the same read. A failure is not kept. */
  get(model: Model): Promise<T> {
    return this.#found.get(`${model.digest} ${model.path}`, () => this.#find(model))
  }
}
