/** Details that have been read already: a file is looked into once, until it changes. */
import { type ModelDetails, readDetails } from './details.ts'
import type { Model } from './store.ts'

/** Details are some 100 kB each. */
const maxEntries = 256

export class DetailsCache {
  readonly #reads = new Map<string, Promise<ModelDetails>>()

  /** Who asks while the file is being read waits for the same read. A failure is not kept. */
  get(model: Model): Promise<ModelDetails> {
    const key = `${model.digest} ${model.path}`
    const read = this.#reads.get(key) ?? this.#read(key, model)
    // Put last, so that the one that was not asked for longest stands first.
    this.#reads.delete(key)
    this.#reads.set(key, read)
    for (const oldest of this.#reads.keys()) {
      if (this.#reads.size <= maxEntries) break
      this.#reads.delete(oldest)
    }
    return read
  }

  #read(key: string, model: Model): Promise<ModelDetails> {
    const read = readDetails(model)
    read.catch(() => this.#reads.delete(key))
    return read
  }
}
