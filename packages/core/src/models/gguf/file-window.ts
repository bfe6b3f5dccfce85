/** A file read from front to back: whatever its size, a small part of it is in memory. */
import type { FileHandle } from 'node:fs/promises'

/** Small enough that what is done between two reads, each of which yields, blocks nobody. */
const windowBytes = 64 * 1024
/** Ten times what the largest vocabularies take. What is skipped without being read is free. */
const maxReadBytes = 128 * 1024 * 1024

/** The file is not what it says it is. Whoever knows the model's name says so to the caller. */
export class UnusableFileError extends Error {}

export class FileWindow {
  readonly size: number
  readonly #file: FileHandle
  #bytes = Buffer.allocUnsafe(windowBytes)
  /** Where in the file the window begins. */
  #start = 0
  /** How much of the window has been read, and how much has been used. A skip may lead beyond. */
  #filled = 0
  #offset = 0
  #readBytes = 0

  constructor(file: FileHandle, size: number) {
    this.#file = file
    this.size = size
  }

  /** Where in the file it stands, in bytes. */
  get position(): number {
    return this.#start + this.#offset
  }

  /** Bytes from here to the end of the file. */
  get remainingBytes(): number {
    return this.size - this.position
  }

  /** Brings the next bytes into memory. Nothing to wait for, where they are: a long array is walked faster so. */
  load(count: number): Promise<void> | undefined {
    return this.#offset + count <= this.#filled ? undefined : this.#fill(count)
  }

  /** The next bytes, which are `need`ed before. They are gone with the next `need`. */
  take(count: number): Buffer {
    this.#offset += count
    return this.#bytes.subarray(this.#offset - count, this.#offset)
  }

  /** The next bytes, as text. */
  takeText(count: number): string {
    this.#offset += count
    return this.#bytes.toString('utf8', this.#offset - count, this.#offset)
  }

  u32(): number {
    this.#offset += 4
    return this.#bytes.readUInt32LE(this.#offset - 4)
  }

  /** A length or a count: exact wherever it could fit into a file. */
  u64(): number {
    return this.u32() + this.u32() * 2 ** 32
  }

  skip(count: number): void {
    this.expectAvailable(count)
    this.#offset += count
  }

  /** Refuses what is promised and cannot be there. */
  expectAvailable(count: number): void {
    if (count > this.remainingBytes) throw new UnusableFileError('it promises more than it holds')
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
      if (this.#readBytes > maxReadBytes) throw new UnusableFileError('its metadata are too long')
    }
  }
}
