/** What was read with some effort, kept in memory up to a size. */

/** Of all that is kept in one, by estimate. */
const maxBytes = 64 * 1024 * 1024
const maxEntries = 256

interface CacheEntry<T> {
  readonly value: Promise<T>
  /** 0 while it is being read. */
  bytes: number
}

export class ByteCache<T> {
  /** The one that was not asked for longest stands first. */
  readonly #entries = new Map<string, CacheEntry<T>>()
  readonly #isPermanentFailure: (error: unknown) => boolean

  /** @param isPermanentFailure whether it will fail in the same way each time. @default none does */
  constructor(isPermanentFailure: (error: unknown) => boolean = () => false) {
    this.#isPermanentFailure = isPermanentFailure
  }

  /** Who asks while it is being read waits for the same read. */
  get(key: string, read: () => Promise<T>): Promise<T> {
    const entry = this.#entries.get(key) ?? this.#load(key, read)
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    this.#shrink()
    return entry.value
  }

  #load(key: string, read: () => Promise<T>): CacheEntry<T> {
    const entry: CacheEntry<T> = { value: read(), bytes: 0 }
    entry.value.then(
      (value) => {
        entry.bytes = bytesOf(value)
        this.#shrink()
      },
      (error) => {
        if (!this.#isPermanentFailure(error) && this.#entries.get(key) === entry) this.#entries.delete(key)
      },
    )
    return entry
  }

  #shrink(): void {
    let bytes = 0
    for (const entry of this.#entries.values()) bytes += entry.bytes
    for (const [oldest, entry] of this.#entries) {
      if (bytes <= maxBytes && this.#entries.size <= maxEntries) break
      bytes -= entry.bytes
      this.#entries.delete(oldest)
    }
  }
}

const slotBytes = 16

/** Of JSON and the like. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return slotBytes + 2 * value.length
  if (typeof value !== 'object' || value === null) return slotBytes
  let bytes = slotBytes
  for (const key in value) bytes += slotBytes + bytesOf((value as Record<string, unknown>)[key])
  return bytes
}
