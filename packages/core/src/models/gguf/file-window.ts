/** Reads a file front to back through a small buffer. */
import type { FileHandle } from 'node:fs/promises'

/**
 * Bytes per read. Each read yields to the event loop, so a small window keeps the work between two reads
 * short.
 */
const windowBytes = 64 * 1024
/**
 * Limit of the bytes to read from one file, ten times the largest vocabularies. Skipped bytes do not count.
 */
const maxReadBytes = 128 * 1024 * 1024

/** Thrown for a damaged or unsupported file. `readGguf` adds the name of the model to the message. */
export class UnusableFileError extends Error {}

export class FileWindow {
  readonly size: number
  readonly #file: FileHandle
  #bytes = Buffer.allocUnsafe(windowBytes)
  /** Offset of the window in the file. */
  #start = 0
  /** Number of loaded bytes in the window. */
  #filled = 0
  /** Position of the next byte in the window. A skip can move it past the loaded bytes. */
  #offset = 0
  #readBytes = 0

  constructor(file: FileHandle, size: number) {
    this.#file = file
    this.size = size
  }

  /** Offset of the next byte in the file. */
  get position(): number {
    return this.#start + this.#offset
  }

  /** Bytes between `position` and the end of the file. */
  get remainingBytes(): number {
    return this.size - this.position
  }

  /**
   * Loads the next `count` bytes. If they are loaded already, returns `undefined` instead of a promise, since
   * awaiting each element of a long array is slow.
   */
  load(count: number): Promise<void> | undefined {
    return this.#offset + count <= this.#filled ? undefined : this.#fill(count)
  }

  /** Returns the next `count` bytes, which the caller has loaded. They are valid until the next `load`. */
  take(count: number): Buffer {
    this.#offset += count
    return this.#bytes.subarray(this.#offset - count, this.#offset)
  }

  /** Decodes the next `count` bytes, which the caller has loaded, as UTF-8. */
  takeText(count: number): string {
    this.#offset += count
    return this.#bytes.toString('utf8', this.#offset - count, this.#offset)
  }

  u32(): number {
    this.#offset += 4
    return this.#bytes.readUInt32LE(this.#offset - 4)
  }

  /** Reads a 64-bit length or count. The result is exact up to 2^53, more than any file needs. */
  u64(): number {
    return this.u32() + this.u32() * 2 ** 32
  }

  skip(count: number): void {
    this.expectAvailable(count)
    this.#offset += count
  }

  /** Throws `UnusableFileError` if the file has fewer than `count` bytes left. */
  expectAvailable(count: number): void {
    if (count > this.remainingBytes) throw new UnusableFileError('it declares more data than it contains')
  }

  async #fill(count: number): Promise<void> {
    if (count > this.remainingBytes) throw new UnusableFileError('it ends too early')
    const unread = this.#bytes.subarray(this.#offset, Math.max(this.#offset, this.#filled))
    const bytes = count > this.#bytes.length ? Buffer.allocUnsafe(count) : this.#bytes
    unread.copy(bytes)
    this.#bytes = bytes
    this.#start += this.#offset
    this.#filled = unread.length
    this.#offset = 0
    while (this.#filled < count) {
      const offset = this.#filled
      const length = Math.min(bytes.length - offset, windowBytes)
      const { bytesRead } = await this.#file.read(bytes, offset, length, this.#start + offset)
      if (bytesRead === 0) throw new UnusableFileError('it ends too early')
      this.#filled += bytesRead
      this.#readBytes += bytesRead
      if (this.#readBytes > maxReadBytes) throw new UnusableFileError('its metadata is too long')
    }
  }
}
