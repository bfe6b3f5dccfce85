/** What has been found out about files already: each is looked into once, until it changes. */
import type { Model } from './store.ts'

/** Details are some 100 kB each. */
const maxEntries = 256

export class FileCache<T> {
  readonly #find: (model: Model) => Promise<T>
  readonly #found = new Map<string, Promise<T>>()

  constructor(find: (model: Model) => Promise<T>) {
    this.#find = find
  }

  /** Who asks while the file is being read waits for the same read. A failure is not kept. */
  get(model: Model): Promise<T> {
    const key = `${model.digest} ${model.path}`
    const found = this.#found.get(key) ?? this.#read(key, model)
    // Put last, so that the one that was not asked for longest stands first.
    this.#found.delete(key)
    this.#found.set(key, found)
    for (const oldest of this.#found.keys()) {
      if (this.#found.size <= maxEntries) break
      this.#found.delete(oldest)
    }
    return found
  }

  #read(key: string, model: Model): Promise<T> {
    const found = this.#find(model)
    found.catch(() => this.#found.delete(key))
    return found
  }
}
