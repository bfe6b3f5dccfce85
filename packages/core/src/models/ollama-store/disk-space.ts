/** Checks the byte limit of a folder and the free space of its disk, across processes. */
import type { Stats } from 'node:fs'
import { constants, open, readdir, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { LlmError } from '../../errors.ts'
import { isFresh, withFileLock } from '../../util/files/file-lock.ts'
import { statOf } from './disk.ts'

export class DiskSpace {
  readonly #maxBytes: number

  /** @param maxBytes limit of the total size of the folder */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns how many bytes are left until the limit. The number is negative beyond the limit. */
  async remainingBytes(folder: string): Promise<number> {
    if (this.#maxBytes === Number.POSITIVE_INFINITY) return this.#maxBytes
    return this.#maxBytes - (await measureDiskUsage(folder)).bytes
  }

  /** Throws `too_large` if the limit or the disk has no space for `bytes` more bytes. */
  async expectSpace(folder: string, bytes: number): Promise<void> {
    await this.#expectSpace(folder, await measureDiskUsage(folder), bytes, bytes)
  }

  /**
   * Extends the partial file of a download to its full length. A lock of the folder prevents two
   * downloads from both reserving the last bytes. The reservation ends when the caller releases the lock of
   * the download. Throws `too_large`.
   */
  async reserve(path: string, sizeBytes: number, signal: AbortSignal): Promise<void> {
    const folder = dirname(path)
    await withFileLock(join(folder, '.room.lock'), signal, async () => {
      const own = await statOf(path)
      const others = await measureDiskUsage(folder, basename(path))
      await this.#expectSpace(folder, others, sizeBytes, sizeBytes - (own ? allocatedBytes(own) : 0))
      const file = await open(path, constants.O_RDWR | constants.O_CREAT)
      await file.truncate(sizeBytes).finally(() => file.close())
    })
  }

  /** @param missingBytes part of `bytes` that is not yet allocated on disk */
  async #expectSpace(folder: string, usage: DiskUsage, bytes: number, missingBytes: number): Promise<void> {
    if (bytes > this.#maxBytes - usage.bytes) throw this.overLimitError()
    const { bavail, bsize } = await statfs(folder)
    if (missingBytes > 0 && missingBytes > bavail * bsize - usage.unwrittenBytes)
      throw new LlmError('too_large', `The disk of the models has no space for ${missingBytes} more bytes.`)
  }

  overLimitError(): LlmError {
    return new LlmError(
      'too_large',
      `The models would exceed their limit of ${this.#maxBytes} bytes on disk.`,
    )
  }
}

interface DiskUsage {
  readonly bytes: number
  /** Part of `bytes` that running downloads have not written yet. */
  readonly unwrittenBytes: number
}

async function measureDiskUsage(folder: string, except?: string): Promise<DiskUsage> {
  const files = await readdir(folder)
  const infos = new Map(
    await Promise.all(files.map(async (file) => [file, await statOf(join(folder, file))] as const)),
  )
  let [bytes, unwrittenBytes] = [0, 0]
  for (const [file, info] of infos) {
    if (!info || file === except) continue
    const lock = file.endsWith('-partial') ? infos.get(file.replace(/-partial$/, '.lock')) : undefined
    const unwritten = lock && isFresh(lock) ? info.size - allocatedBytes(info) : 0
    bytes += allocatedBytes(info) + unwritten
    unwrittenBytes += unwritten
  }
  return { bytes, unwrittenBytes }
}

/** Bytes that a file occupies on disk. A partial download is a sparse file of full length. */
const allocatedBytes = ({ size, blocks }: Stats): number =>
  process.platform === 'win32' ? size : Math.min(size, blocks * 512)
