/** Hashes a file while it is written, so that little is left to hash at the end. */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { type Digest, digestOfHex } from '../ollama-store/digest.ts'

/** Bytes to hash at once, about 1 ms of work. */
const pieceBytes = 512 * 1024

export class FollowingHash {
  readonly #file: FileHandle
  readonly #contiguousBytes: () => number
  readonly #signal: AbortSignal
  readonly #hash = createHash('sha256')
  readonly #piece = Buffer.allocUnsafe(pieceBytes)
  #hashedBytes = 0
  #running: Promise<void> | undefined
  #isStopped = false

  /** @param contiguousBytes returns how many bytes from the start of the file are final */
  constructor(file: FileHandle, contiguousBytes: () => number, signal: AbortSignal) {
    this.#file = file
    this.#contiguousBytes = contiguousBytes
    this.#signal = signal
  }

  /** Hashes all contiguous bytes that are not hashed yet. Concurrent calls share the work. */
  advance(): Promise<void> {
    this.#running ??= this.#advance().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Returns the digest of all contiguous bytes. It can be called only once. */
  async digest(): Promise<Digest> {
    await this.#running?.catch(() => {})
    await this.advance()
    this.#signal.throwIfAborted()
    return digestOfHex(this.#hash.digest('hex'))
  }

  /** Stops hashing. Resolves when the last read from the file has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running?.catch(() => {})
  }

  async #advance(): Promise<void> {
    for (
      let remainingBytes = this.#remainingBytes();
      remainingBytes > 0 && !this.#isStopped && !this.#signal.aborted;
      remainingBytes = this.#remainingBytes()
    ) {
      const { bytesRead } = await this.#file.read(
        this.#piece,
        0,
        Math.min(pieceBytes, remainingBytes),
        this.#hashedBytes,
      )
      if (bytesRead === 0) throw new Error('The file is shorter than what was written to it.')
      this.#hash.update(this.#piece.subarray(0, bytesRead))
      this.#hashedBytes += bytesRead
    }
  }

  #remainingBytes(): number {
    return this.#contiguousBytes() - this.#hashedBytes
  }
}
