/**
 * SHA-256 of a file that may still be written. Reads slices on the main thread, which is free while native code
 * computes or writes, and returns to the event loop after each of them. libuv's pool has a single thread, so
 * asynchronous reads would wait for the decode steps.
 */
import { createHash } from 'node:crypto'
import { closeSync, readSync } from 'node:fs'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'

/** Reading and hashing a slice takes about 0.3 ms. */
const sliceBytes = 2 ** 18
/** How long to wait for more bytes of a file that is still written, in ms. */
const growthMs = 1

export class FileHash {
  /** Resolves with `undefined` if the file cannot be read or has another size. */
  readonly digest: Promise<string | undefined>
  #sizeBytes: number | undefined
  #isAbandoned = false

  /**
   * @param fd open file, which is closed at the end
   * @param onProgress called after each slice
   * @param after hashing starts when this promise has resolved
   */
  constructor(fd: number, onProgress: () => void, after?: Promise<unknown>) {
    this.digest = this.#run(fd, onProgress, after)
  }

  /** Call it when the whole file is written. */
  setSize(sizeBytes: number): void {
    this.#sizeBytes = sizeBytes
  }

  abandon(): void {
    this.#isAbandoned = true
  }

  async #run(fd: number, onProgress: () => void, after?: Promise<unknown>): Promise<string | undefined> {
    try {
      await after
      return await this.#hash(fd, onProgress)
    } catch {
      return undefined
    } finally {
      closeSync(fd)
    }
  }

  async #hash(fd: number, onProgress: () => void): Promise<string | undefined> {
    const hash = createHash('sha256')
    const buffer = Buffer.allocUnsafe(sliceBytes)
    let position = 0
    while (!this.#isAbandoned) {
      const count = readSync(fd, buffer, 0, sliceBytes, position)
      position += count
      if (count > 0) {
        hash.update(buffer.subarray(0, count))
        onProgress()
        await setImmediate()
      } else if (this.#sizeBytes === undefined) await delay(growthMs)
      else return position === this.#sizeBytes ? hash.digest('hex') : undefined
    }
    return undefined
  }
}
