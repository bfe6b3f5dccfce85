/** What is left of a budget and of a disk, for all processes that write into one folder. */
import type { Stats } from 'node:fs'
import { constants, open, readdir, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { LlmError } from '../../errors.ts'
import { isFresh, withLock } from '../../util/file-lock.ts'

export class Room {
  readonly #maxBytes: number

  /** @param maxBytes that all files in the folder may have together */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes that may be written; less than none where there are too many already. */
  async left(folder: string): Promise<number> {
    if (this.#maxBytes === Number.POSITIVE_INFINITY) return this.#maxBytes
    return this.#maxBytes - (await takenIn(folder)).bytes
  }

  /** Throws `too_large` where the budget or the disk has no room for so many bytes more. */
  async expect(folder: string, bytes: number): Promise<void> {
    await this.#expect(folder, await takenIn(folder), bytes, bytes)
  }

  /**
   * The partial file of a download gets its whole length, at once or not at all: two that want the last bytes do not both get
   * them. It has them as long as somebody has the download's lock. Throws `too_large`.
   */
  async claim(path: string, sizeBytes: number, signal: AbortSignal): Promise<void> {
    const folder = dirname(path)
    await withLock(join(folder, '.room.lock'), signal, async () => {
      const own = await statOf(path)
      const others = await takenIn(folder, basename(path))
      await this.#expect(folder, others, sizeBytes, sizeBytes - (own ? occupied(own) : 0))
      const file = await open(path, constants.O_RDWR | constants.O_CREAT)
      await file.truncate(sizeBytes).finally(() => file.close())
    })
  }

  /** @param missing how many of the bytes are not on the disk yet */
  async #expect(folder: string, taken: Taken, bytes: number, missing: number): Promise<void> {
    if (bytes > this.#maxBytes - taken.bytes) throw this.overBudget()
    const { bavail, bsize } = await statfs(folder)
    if (missing > 0 && missing > bavail * bsize - taken.missing)
      throw new LlmError('too_large', `There is no room on the disk of the models for ${missing} bytes more.`)
  }

  overBudget(): LlmError {
    return new LlmError(
      'too_large',
      `The models may take ${this.#maxBytes} bytes on disk, and this is more than is left of that.`,
    )
  }
}

interface Taken {
  readonly bytes: number
  /** Of those, what downloads that run have still to write. */
  readonly missing: number
}

async function takenIn(folder: string, except?: string): Promise<Taken> {
  const files = await readdir(folder)
  const infos = new Map(
    await Promise.all(files.map(async (file) => [file, await statOf(join(folder, file))] as const)),
  )
  let [bytes, missing] = [0, 0]
  for (const [file, info] of infos) {
    if (!info || file === except) continue
    const lock = file.endsWith('-partial') ? infos.get(file.replace(/-partial$/, '.lock')) : undefined
    const more = lock && isFresh(lock) ? info.size - occupied(info) : 0
    bytes += occupied(info) + more
    missing += more
  }
  return { bytes, missing }
}

/** A download takes its whole length from the beginning, with holes. */
const occupied = ({ size, blocks }: Stats): number =>
  process.platform === 'win32' ? size : Math.min(size, blocks * 512)

const statOf = (path: string): Promise<Stats | undefined> => stat(path).catch(() => undefined)
