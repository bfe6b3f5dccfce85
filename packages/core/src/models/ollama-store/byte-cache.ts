/** Caches the results of file reads, up to an estimated size in memory. */
import type { LRUCache } from 'lru-cache'

const maxBytes = 64 * 1024 * 1024
const maxEntries = 256

type Read<T> = () => Promise<T>
/** The result of a read, or its permanent failure. */
type Outcome<T> = { readonly value: T } | { readonly error: unknown }

export class ByteCache<T> {
  readonly #isPermanentFailure: (error: unknown) => boolean
  #outcomes: Promise<LRUCache<string, Outcome<T>, Read<T>>> | undefined

  /**
   * @param isPermanentFailure whether to cache an error, because another read would fail in the same way.
   *   @default never
   */
  constructor(isPermanentFailure: (error: unknown) => boolean = () => false) {
    this.#isPermanentFailure = isPermanentFailure
  }

  /** Concurrent calls for one key share one read. */
  async get(key: string, read: Read<T>): Promise<T> {
    this.#outcomes ??= this.#createCache()
    const outcome = await (await this.#outcomes).forceFetch(key, { context: read })
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  /** Imports `lru-cache` for the first read, so that an app starts without it. */
  async #createCache(): Promise<LRUCache<string, Outcome<T>, Read<T>>> {
    const { LRUCache } = await import('lru-cache')
    return new LRUCache<string, Outcome<T>, Read<T>>({
      max: maxEntries,
      maxSize: maxBytes,
      sizeCalculation: estimateBytes,
      // A read that is evicted before it ends still resolves for its callers.
      ignoreFetchAbort: true,
      fetchMethod: (_key, _stale, { context: read }) =>
        read().then(
          (value) => ({ value }),
          (error: unknown) => {
            if (this.#isPermanentFailure(error)) return { error }
            throw error
          },
        ),
    })
  }
}

const slotBytes = 16

/** Estimates the memory of a JSON value. */
function estimateBytes(value: unknown): number {
  if (typeof value === 'string') return slotBytes + 2 * value.length
  if (typeof value !== 'object' || value === null) return slotBytes
  let bytes = slotBytes
  for (const key in value) bytes += slotBytes + estimateBytes((value as Record<string, unknown>)[key])
  return bytes
}
