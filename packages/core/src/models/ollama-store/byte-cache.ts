/** What was read with some effort, kept in memory up to a size. */

/** Of all that is kept in one, by estimate. */
const maxBytes = 64 * 1024 * 1024
const maxEntries = 256

interface Kept<T> {
  readonly value: Promise<T>
  /** 0 while it is being read. */
  bytes: number
}

export class ByteCache<T> {
  /** The one that was not asked for longest stands first. */
  readonly #kept = new Map<string, Kept<T>>()
  readonly #keepsFailure: (error: unknown) => boolean

  /** @param keepsFailure whether it will fail in the same way each time. @default none does */
  constructor(keepsFailure: (error: unknown) => boolean = () => false) {
    this.#keepsFailure = keepsFailure
  }

  /** Who asks while it is being read waits for the same read. */
  get(key: string, read: () => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key) ?? this.#read(key, read)
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    this.#shrink()
    return kept.value
  }

  #read(key: string, read: () => Promise<T>): Kept<T> {
    const kept: Kept<T> = { value: read(), bytes: 0 }
    kept.value.then(
      (value) => {
        kept.bytes = bytesOf(value)
        this.#shrink()
      },
      (error) => {
        if (!this.#keepsFailure(error) && this.#kept.get(key) === kept) this.#kept.delete(key)
      },
    )
    return kept
  }

  #shrink(): void {
    let bytes = 0
    for (const kept of this.#kept.values()) bytes += kept.bytes
    for (const [oldest, kept] of this.#kept) {
      if (bytes <= maxBytes && this.#kept.size <= maxEntries) break
      bytes -= kept.bytes
      this.#kept.delete(oldest)
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
