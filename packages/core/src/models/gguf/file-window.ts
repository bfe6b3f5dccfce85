/** A file read from front to back: whatever its size, a small part of it is in memory. */
import type { FileHandle } from 'node:fs/promises'

/** Small enough that what is done between two reads, each of which yields, blocks nobody. */
const windowBytes = 64 * 1024
/** Ten times what the largest vocabularies take. What is skipped without being read is free. */
const maxReadBytes = 128 * 1024 * 1024

/** The file is not what it says it is. Whoever knows the model's name says so to the caller. */
export class Unusable extends Error {}

export class FileWindow {
  readonly size: number
  readonly #file: FileHandle
  #bytes = Buffer.allocUnsafe(windowBytes)
  /** Where in the file the window begins. */
  #start = 0
  /** How much of the window has been read, and how much has been used. A skip may lead beyond. */
  #filled = 0
  #at = 0
  #readBytes = 0

  constructor(file: FileHandle, size: number) {
    this.#file = file
    this.size = size
  }

  /** Where in the file it stands, in bytes. */
  get position(): number {
    return this.#start + this.#at
  }

  /** Bytes from here to the end of the file. */
  get left(): number {
    return this.size - this.position
  }

  /** Brings the next bytes into memory. Nothing to wait for, where they are: a long array is walked faster so. */
  need(count: number): Promise<void> | undefined {
    return this.#at + count <= this.#filled ? undefined : this.#fill(count)
  }

  /** The next bytes, which are `need`ed before. They are gone with the next `need`. */
  take(count: number): Buffer {
    this.#at += count
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  /** The next bytes, as text. */
  text(count: number): string {
    this.#at += count
    return this.#bytes.toString('utf8', this.#at - count, this.#at)
  }

  u32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  /** A length or a count: exact wherever it could fit into a file. */
  u64(): number {
    return this.u32() + this.u32() * 2 ** 32
  }

  skip(count: number): void {
    this.expect(count)
    this.#at += count
  }

  /** Refuses what is promised and cannot be there. */
  expect(count: number): void {
    if (count > this.left) throw new Unusable('it promises more than it holds')
  }

  async #fill(count: number): Promise<void> {
    if (count > this.left) throw new Unusable('it ends too early')
    const rest = this.#bytes.subarray(this.#at, Math.max(this.#at, this.#filled))
    const bytes = count > this.#bytes.length ? Buffer.allocUnsafe(count) : this.#bytes
    rest.copy(bytes)
    this.#bytes = bytes
    this.#start += this.#at
    this.#filled = rest.length
    this.#at = 0
    while (this.#filled < count) {
      const offset = this.#filled
      const length = Math.min(bytes.length - offset, windowBytes)
      const { bytesRead } = await this.#file.read(bytes, offset, length, this.#start + offset)
      if (bytesRead === 0) throw new Unusable('it ends too early')
      this.#filled += bytesRead
      this.#readBytes += bytesRead
      if (this.#readBytes > maxReadBytes) throw new Unusable('its metadata are too long')
    }
  }
}
