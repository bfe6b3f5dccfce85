/** Content-addressed files on disk, laid out like `blobs/` in Ollama's store. */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { invalidRequest, LlmError } from '../../errors.ts'
import { raceAbort } from '../../util/abort.ts'
import { withFileLock } from '../../util/files/file-lock.ts'
import { renameOver } from '../../util/files/rename-over.ts'
import { blobName, type Digest, digestOf, digestOfHex, parseDigest } from './digest.ts'
import { readOnlyError, statOf, syncFolder, toDiskError, withFile, writeAll } from './disk.ts'
import { DiskSpace } from './disk-space.ts'
import type { Blobs } from './store-contracts.ts'

export interface BlobOptions {
  /**
   * Limit of the total size of `blobs/`, in bytes. Files from other processes count, too. @default unlimited
   */
  readonly maxBytes?: number
}

/** Bytes to read, write or hash at once, about 1 ms of work. */
const pieceBytes = 512 * 1024
/**
 * Bytes to write between two checks of the limit. The check is repeated, since other processes write files,
 * too.
 */
const bytesBetweenBudgetChecks = 64 * 1024 * 1024

export class BlobStore implements Blobs {
  readonly #folders: readonly string[]
  readonly #diskSpace: DiskSpace

  /** @param roots folders that contain `blobs/`. The store writes to the first folder only */
  constructor(roots: readonly string[], { maxBytes = Number.POSITIVE_INFINITY }: BlobOptions = {}) {
    this.#folders = roots.map((root) => join(root, 'blobs'))
    this.#diskSpace = new DiskSpace(maxBytes)
  }

  async find(digest: Digest): Promise<{ readonly path: string; readonly sizeBytes: number } | undefined> {
    for (const folder of this.#folders) {
      const path = join(folder, blobName(digest))
      const info = await statOf(path)
      if (info?.isFile()) return { path, sizeBytes: info.size }
    }
    return undefined
  }

  async touch(digest: Digest): ReturnType<Blobs['touch']> {
    const found = await this.find(digest)
    const now = new Date()
    if (found) await utimes(found.path, now, now).catch(() => undefined)
    return found
  }

  async read(digest: Digest, maxBytes: number): Promise<Buffer> {
    const found = await this.find(digest)
    if (!found) throw new LlmError('upstream', `The blob ${digest} is missing.`)
    if (found.sizeBytes > maxBytes) throw new LlmError('upstream', `The blob ${digest} is too large.`)
    const bytes = await readFile(found.path)
    if (digestOf(bytes) !== digest) throw new LlmError('upstream', `The blob ${digest} is damaged.`)
    return bytes
  }

  async write(digest: Digest, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    if (await this.touch(digest)) return
    const actual = (await this.#put(bytes, signal)).digest
    if (actual !== digest)
      throw invalidRequest(`digest mismatch, expected "${digest}", got "${actual}"`, { param: 'digest' })
  }

  async add(bytes: Uint8Array): ReturnType<Blobs['add']> {
    const digest = digestOf(bytes)
    if (await this.touch(digest)) return { digest, sizeBytes: bytes.length, isNew: false }
    return this.#put(streamOnce(bytes), new AbortController().signal)
  }

  async copy(path: string, signal: AbortSignal): ReturnType<Blobs['copy']> {
    await this.#diskSpace.expectSpace(await this.#ensureFolder(), (await stat(path)).size)
    return this.#put(readChunks(path), signal)
  }

  async partialPath(digest: Digest): Promise<string> {
    return `${join(await this.#ensureFolder(), blobName(digest))}-partial`
  }

  async reserve(digest: Digest, sizeBytes: number, signal: AbortSignal): Promise<void> {
    await this.#diskSpace.reserve(await this.partialPath(digest), sizeBytes, signal).catch((error) => {
      throw toDiskError(error)
    })
  }

  async commit(digest: Digest, signal: AbortSignal, knownDigest?: Digest): Promise<void> {
    const path = await this.partialPath(digest)
    const actual = await withFile(path, 'r+', async (file) => {
      const found = knownDigest ?? (await digestOfFile(file, signal))
      await file.sync()
      return found
    })
    if (actual !== digest) {
      await rm(path, { force: true })
      const message = `digest mismatch, file must be downloaded again: want ${digest}, got ${actual}`
      throw new LlmError('upstream', message)
    }
    await this.#publish(path, digest)
  }

  async withDownloadLock<T>(
    digest: Digest,
    signal: AbortSignal,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const path = `${join(await this.#ensureFolder(), blobName(digest))}.lock`
    return withFileLock(path, signal, work).catch((error) => {
      throw toDiskError(error)
    })
  }

  async expectSpace(bytes: number): Promise<void> {
    await this.#diskSpace.expectSpace(await this.#ensureFolder(), bytes)
  }

  /**
   * Lists blobs, downloads and temporary files in the writable folder. Temporary files have no digest. All
   * files of a download, including its lock, are listed with the date of the newest of these files.
   */
  async list(): Promise<
    readonly { readonly path: string; readonly digest?: Digest; readonly modifiedAt: Date }[]
  > {
    const [folder] = this.#folders
    if (folder === undefined) return []
    const files = (await readdir(folder).catch(() => [])).filter((file) => file.startsWith('sha256-'))
    const found = files.map(async (file) => {
      const path = join(folder, file)
      const digest = parseDigest(file)
      const info = await statOf(path)
      return info?.isFile() ? [{ path, modifiedAt: info.mtime, ...(digest && { digest }) }] : []
    })
    const all = (await Promise.all(found)).flat()
    const newest = new Map<string, Date>()
    for (const { path, modifiedAt } of all)
      if (modifiedAt > (newest.get(downloadKeyOf(path)) ?? 0)) newest.set(downloadKeyOf(path), modifiedAt)
    return all.map((one) => ({ ...one, modifiedAt: newest.get(downloadKeyOf(one.path)) ?? one.modifiedAt }))
  }

  /** Returns when a blob in the writable folder was written or last touched. */
  async writtenAt(digest: Digest): Promise<Date | undefined> {
    const [folder] = this.#folders
    return folder === undefined ? undefined : (await statOf(join(folder, blobName(digest))))?.mtime
  }

  async remove(digest: Digest): Promise<void> {
    const [folder] = this.#folders
    if (folder !== undefined) await rm(join(folder, blobName(digest)), { force: true })
  }

  /**
   * Writes to a temporary file first. So slow writers do not block others, and every visible blob is
   * complete.
   */
  async #put(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): ReturnType<Blobs['add']> {
    const folder = await this.#ensureFolder()
    // No blob has this name, so `prune` removes the file if it is left behind.
    const path = join(folder, `sha256-${randomUUID()}`)
    try {
      const { digest, sizeBytes } = await withFile(path, 'wx', (file) =>
        this.#fill(file, folder, iterateUntilAborted(signal, bytes)),
      )
      const isNew = (await this.touch(digest))?.sizeBytes !== sizeBytes
      // Other processes may have used up the space meanwhile.
      if (isNew) await this.#diskSpace.expectSpace(folder, 0)
      await (isNew ? this.#publish(path, digest) : rm(path))
      return { digest, sizeBytes, isNew }
    } catch (error) {
      await rm(path, { force: true })
      throw toDiskError(error)
    }
  }

  /** Hashes the bytes while writing them. */
  async #fill(
    file: FileHandle,
    folder: string,
    bytes: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly digest: Digest; readonly sizeBytes: number }> {
    const hash = createHash('sha256')
    let [sizeBytes, nextCheckAt, limit] = [0, 0, 0]
    for await (const chunk of bytes) {
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        if (sizeBytes >= nextCheckAt) {
          limit = sizeBytes + (await this.#diskSpace.remainingBytes(folder))
          nextCheckAt = sizeBytes + bytesBetweenBudgetChecks
        }
        const piece = chunk.subarray(at, at + pieceBytes)
        sizeBytes += piece.length
        if (sizeBytes > limit) throw this.#diskSpace.overLimitError()
        await Promise.all([writeAll(file, piece), hash.update(piece)])
      }
    }
    await file.sync()
    return { digest: digestOfHex(hash.digest('hex')), sizeBytes }
  }

  async #publish(path: string, digest: Digest): Promise<void> {
    const folder = await this.#ensureFolder()
    await renameOver(path, join(folder, blobName(digest)))
    await syncFolder(folder)
  }

  async #ensureFolder(): Promise<string> {
    const [folder] = this.#folders
    if (folder === undefined) throw readOnlyError()
    await mkdir(folder, { recursive: true }).catch((error) => {
      throw toDiskError(error)
    })
    return folder
  }
}

async function* streamOnce<T>(item: T): AsyncGenerator<T> {
  yield item
}

/** Opens the file at the first read, so that ending the iteration always closes the file. */
async function* readChunks(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path, { highWaterMark: pieceBytes })
}

/** Throws the signal's reason as soon as the signal aborts, even while the source is stalled. */
async function* iterateUntilAborted<T>(signal: AbortSignal, items: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await raceAbort(iterator.next(), signal)
      if (done) return
      yield value
    }
  } finally {
    // The result is not awaited, since a stalled source may never settle it.
    iterator.return?.().catch(() => {})
  }
}

/** Returns the same key for all files of a download, including its lock. */
const downloadKeyOf = (path: string): string => path.replace(/(?:-partial(?:-\d+)?|\.lock)$/, ' download')

async function digestOfFile(file: FileHandle, signal: AbortSignal): Promise<Digest> {
  const hash = createHash('sha256')
  const pieces = file.createReadStream({ highWaterMark: pieceBytes, autoClose: false, signal })
  for await (const piece of pieces) hash.update(piece)
  return digestOfHex(hash.digest('hex'))
}
