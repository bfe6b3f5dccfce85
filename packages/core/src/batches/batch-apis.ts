/** The APIs that have batches. They are loaded with the first batch, so that an app without batches starts faster. */

import type { BatchFormat } from './batch.ts'
import type { BatchApi } from './batch-api.ts'

export class BatchApis {
  readonly #load: () => Promise<readonly BatchApi[]>
  #apis: Promise<readonly BatchApi[]> | undefined

  constructor(load: () => Promise<readonly BatchApi[]>) {
    this.#load = load
  }

  async of(format: BatchFormat): Promise<BatchApi> {
    this.#apis ??= this.#load()
    return (await this.#apis).find((api) => api.format === format) as BatchApi
  }
}
