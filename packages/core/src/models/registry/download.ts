/**
 * Downloads a blob in parallel parts. Each part resumes after an error, a stall, or the end of the process.
 */
import { type FileHandle, open } from 'node:fs/promises'
import type { Digest } from '../ollama-store/digest.ts'
import { toDiskError, writeAll } from '../ollama-store/disk.ts'
import { PartFiles, planParts, type TransferPart } from '../ollama-store/partial.ts'
import type { Blobs } from '../ollama-store/store-contracts.ts'
import { FollowingHash } from './following-hash.ts'
import { discard, type GuardedResponse } from './guarded-fetch.ts'
import { type ByteRange, expectStatus } from './registry.ts'
import { FinalError, retry, type TransferPolicy, withStallWatch } from './retry.ts'

export interface BlobSource {
  readonly digest: Digest
  readonly sizeBytes: number
  fetch(range: ByteRange, signal: AbortSignal): Promise<GuardedResponse>
}

const partsAtOnce = 8
/** Bytes between two saves of a part's state. If the process is killed, these bytes must be fetched again. */
const bytesBetweenSaves = 1024 ** 2

export class Download {
  readonly #source: BlobSource
  readonly #blobs: Blobs
  readonly #policy: TransferPolicy
  #parts: readonly TransferPart[] = []
  /** Hash of the file. Absent once hashed bytes may have been overwritten. */
  #hash: FollowingHash | undefined

  constructor(source: BlobSource, blobs: Blobs, policy: TransferPolicy) {
    this.#source = source
    this.#blobs = blobs
    this.#policy = policy
  }

  get sizeBytes(): number {
    return this.#source.sizeBytes
  }

  get completedBytes(): number {
    return this.#parts.reduce((sum, part) => sum + part.completed, 0)
  }

  /** Bytes from the start of the file to the first gap. */
  get #contiguousBytes(): number {
    const unfinished = this.#parts.find((part) => part.completed < part.size)
    return unfinished ? unfinished.offset + unfinished.completed : this.#source.sizeBytes
  }

  /**
   * Downloads, verifies and publishes the blob. After a failure, the partial file stays, and the next
   * download resumes it. Throws an `LlmError`: `upstream`, or `too_large` if there is no space.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { digest, sizeBytes } = this.#source
    const files = new PartFiles(await this.#blobs.partialPath(digest))
    const parts = await files.read(sizeBytes)
    this.#parts = parts ?? []
    // The registry may report a false size, so the space is checked before files are created.
    await this.#blobs.reserve(digest, sizeBytes, signal)
    if (!parts) this.#parts = await files.reset(planParts(sizeBytes, this.#policy.partBytes))

    const actual = await this.#fetchAll(files, signal)
    // Uploads and other servers, such as Ollama, reserve no space, and may have written files meanwhile.
    await this.#blobs.expectSpace(0)
    await this.#blobs.commit(digest, signal, actual).finally(() => files.removeStates())
  }

  /** Returns the digest if the file was hashed during the download. */
  async #fetchAll(files: PartFiles, signal: AbortSignal): Promise<Digest | undefined> {
    const { sizeBytes } = this.#source
    const file = await open(files.path, 'r+')
    const hash = new FollowingHash(file, () => this.#contiguousBytes, signal)
    this.#hash = hash
    try {
      await this.#fetchParts(file, files, signal).catch(async (error) => {
        if (!(error instanceof RangesUnsupportedError)) throw error
        // The registry ignores ranges: fetch everything as one part.
        this.#hash = undefined
        this.#parts = await files.reset(planParts(sizeBytes, sizeBytes))
        await this.#fetchParts(file, files, signal)
      })
      return await this.#hash?.digest()
    } finally {
      await hash.stop()
      await file.close()
    }
  }

  /** A failed part aborts the others. */
  async #fetchParts(file: FileHandle, files: PartFiles, signal: AbortSignal): Promise<void> {
    const failure = new AbortController()
    const combinedSignal = AbortSignal.any([signal, failure.signal])
    const queue = this.#parts.filter((part) => part.completed < part.size)
    const worker = async (): Promise<void> => {
      for (let part = queue.shift(); part; part = queue.shift())
        await this.#fetchPart(part, file, files, combinedSignal)
    }
    // Waits for all workers: none may write after the file is closed.
    await Promise.all(
      Array.from({ length: partsAtOnce }, () => worker().catch((error) => failure.abort(error))),
    )
    signal.throwIfAborted()
    failure.signal.throwIfAborted()
  }

  #fetchPart(part: TransferPart, file: FileHandle, files: PartFiles, signal: AbortSignal): Promise<void> {
    const completed = (): number => part.completed
    const attempt = (combinedSignal: AbortSignal): Promise<void> =>
      this.#attempt(part, file, files, combinedSignal)
        .finally(() => files.save(part))
        .catch((error) => {
          throw toDiskError(error)
        })
    return retry(
      () => withStallWatch(attempt, completed, this.#policy, signal),
      completed,
      this.#policy,
      signal,
    )
  }

  async #attempt(part: TransferPart, file: FileHandle, files: PartFiles, signal: AbortSignal): Promise<void> {
    // A previous attempt may have received all bytes before its connection failed.
    if (part.completed === part.size) return
    const body = await this.#open(part, signal)
    let saved = part.completed
    for await (const chunk of body) {
      if (part.completed + chunk.length > part.size) throw new Error('received more bytes than requested')
      await writeAll(file, chunk, part.offset + part.completed)
      part.completed += chunk.length
      if (part.completed - saved < bytesBetweenSaves) continue
      saved = part.completed
      await files.save(part)
      this.#hash?.advance().catch(() => {})
    }
    if (part.completed < part.size) throw new Error('unexpected EOF')
  }

  /** Requests the missing bytes of the part. Rejects a response with another byte range. */
  async #open(part: TransferPart, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { sizeBytes } = this.#source
    const [first, last] = [part.offset + part.completed, part.offset + part.size - 1]
    const response = await this.#source.fetch([first, last], signal)
    if (response.status === 200) {
      if (part.size < sizeBytes) throw await discard(response).then(() => new RangesUnsupportedError())
      // The registry sent the whole file instead of the missing bytes.
      if (part.completed > 0) this.#hash = undefined
      part.completed = 0
      return response.body
    }
    await expectStatus(response, 206)
    const [expected, received] = [`bytes ${first}-${last}/${sizeBytes}`, response.header('content-range')]
    if (received === expected) return response.body
    throw await discard(response).then(() => new Error(`expected ${expected}, got ${received?.slice(0, 80)}`))
  }
}

/** Thrown if the registry answers a range request with the whole blob. */
class RangesUnsupportedError extends FinalError {}
