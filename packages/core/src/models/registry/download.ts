/**
 * A blob from a registry, in parts that come side by side, each continued from where it stopped: after an error, a stall, or
 * the end of a process.
 */
import { type FileHandle, open } from 'node:fs/promises'
import type { Digest } from '../ollama-store/digest.ts'
import { diskError } from '../ollama-store/disk.ts'
import { type Part, PartFiles, planParts } from '../ollama-store/partial.ts'
import type { Blobs } from '../ollama-store/store-contracts.ts'
import { FollowingHash } from './following-hash.ts'
import { type Answer, discard } from './guarded-fetch.ts'
import { type ByteRange, expectStatus } from './registry.ts'
import { FinalError, type Pace, retry, withStallWatch } from './retry.ts'

export interface BlobSource {
  readonly digest: Digest
  readonly sizeBytes: number
  fetch(range: ByteRange, signal: AbortSignal): Promise<Answer>
}

const partsAtOnce = 8
/** A killed process fetches so much of each part again, and what was on its way. */
const bytesBetweenStates = 1024 ** 2

export class Download {
  readonly #source: BlobSource
  readonly #blobs: Blobs
  readonly #pace: Pace
  #parts: readonly Part[] = []
  /** Not where bytes that have been hashed may have been written again. */
  #hash: FollowingHash | undefined

  constructor(source: BlobSource, blobs: Blobs, pace: Pace) {
    this.#source = source
    this.#blobs = blobs
    this.#pace = pace
  }

  get sizeBytes(): number {
    return this.#source.sizeBytes
  }

  get completedBytes(): number {
    return this.#parts.reduce((sum, part) => sum + part.completed, 0)
  }

  /** How many bytes have come without a gap. */
  get #front(): number {
    const open = this.#parts.find((part) => part.completed < part.size)
    return open ? open.offset + open.completed : this.#source.sizeBytes
  }

  /**
   * Ends with the blob in its place, verified; otherwise what has come stays, to be continued.
   * Throws `upstream`, and `too_large` where there is no room.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { digest, sizeBytes } = this.#source
    const files = new PartFiles(await this.#blobs.partial(digest))
    const parts = await files.read(sizeBytes)
    this.#parts = parts ?? []
    // Before anything is made of the size, which is only told.
    await this.#blobs.claim(digest, sizeBytes, signal)
    if (!parts) this.#parts = await files.start(planParts(sizeBytes, this.#pace.partBytes))

    const real = await this.#fetchAll(files, signal)
    // Uploads, and servers that know of no claims, may have written meanwhile.
    await this.#blobs.expectRoom(0)
    await this.#blobs.commit(digest, signal, real).finally(() => files.removeStates())
  }

  /** The digest of what has come, where it is known. */
  async #fetchAll(files: PartFiles, signal: AbortSignal): Promise<Digest | undefined> {
    const { sizeBytes } = this.#source
    const file = await open(files.path, 'r+')
    const hash = new FollowingHash(file, () => this.#front, signal)
    this.#hash = hash
    try {
      await this.#fetchParts(file, files, signal).catch(async (error) => {
        if (!(error instanceof NoRanges)) throw error
        // In one piece, from the start: the registry has no other way.
        this.#hash = undefined
        this.#parts = await files.start(planParts(sizeBytes, sizeBytes))
        await this.#fetchParts(file, files, signal)
      })
      return await this.#hash?.digest()
    } finally {
      await hash.stop()
      await file.close()
    }
  }

  /** The first part that fails ends all. */
  async #fetchParts(file: FileHandle, files: PartFiles, signal: AbortSignal): Promise<void> {
    const failed = new AbortController()
    const either = AbortSignal.any([signal, failed.signal])
    const queue = this.#parts.filter((part) => part.completed < part.size)
    const worker = async (): Promise<void> => {
      for (let part = queue.shift(); part; part = queue.shift())
        await this.#fetchPart(part, file, files, either)
    }
    // Nobody may write any more when the file is closed.
    await Promise.all(
      Array.from({ length: partsAtOnce }, () => worker().catch((error) => failed.abort(error))),
    )
    signal.throwIfAborted()
    failed.signal.throwIfAborted()
  }

  #fetchPart(part: Part, file: FileHandle, files: PartFiles, signal: AbortSignal): Promise<void> {
    const completed = (): number => part.completed
    const attempt = (either: AbortSignal): Promise<void> =>
      this.#attempt(part, file, files, either)
        .finally(() => files.save(part))
        .catch((error) => {
          throw diskError(error)
        })
    return retry(() => withStallWatch(attempt, completed, this.#pace, signal), completed, this.#pace, signal)
  }

  async #attempt(part: Part, file: FileHandle, files: PartFiles, signal: AbortSignal): Promise<void> {
    // What broke off may have done so behind the last byte.
    if (part.completed === part.size) return
    const body = await this.#open(part, signal)
    let saved = part.completed
    for await (const chunk of body) {
      if (part.completed + chunk.length > part.size) throw new Error('more bytes came than were asked for')
      await writeAll(file, chunk, part.offset + part.completed)
      part.completed += chunk.length
      if (part.completed - saved < bytesBetweenStates) continue
      saved = part.completed
      await files.save(part)
      this.#hash?.advance().catch(() => {})
    }
    if (part.completed < part.size) throw new Error('unexpected EOF')
  }

  /** The bytes of the part that are not there yet, and no others. */
  async #open(part: Part, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { sizeBytes } = this.#source
    const [first, last] = [part.offset + part.completed, part.offset + part.size - 1]
    const answer = await this.#source.fetch([first, last], signal)
    if (answer.status === 200) {
      if (part.size < sizeBytes) throw await discard(answer).then(() => new NoRanges())
      // All of it, though the rest was asked for.
      if (part.completed > 0) this.#hash = undefined
      part.completed = 0
      return answer.body
    }
    await expectStatus(answer, 206)
    const [wanted, told] = [`bytes ${first}-${last}/${sizeBytes}`, answer.header('content-range')]
    if (told === wanted) return answer.body
    throw await discard(answer).then(
      () => new Error(`${wanted} were asked for, and ${told?.slice(0, 80)} came`),
    )
  }
}

/** The registry sends all where a part was asked for. */
class NoRanges extends FinalError {}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}
