/** A blob to a registry, part after part, continued from where the registry says that it stopped. */
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { Digest } from '../ollama-store/digest.ts'
import { planParts } from '../ollama-store/partial.ts'
import type { Registry, UploadPlace } from './registry.ts'
import { type Pace, retry, withStallWatch } from './retry.ts'

/** Of a slow connection it has to be seen that it moves. */
const pieceBytes = 16 * 1024

export interface UploadedFile {
  readonly digest: Digest
  readonly path: string
  readonly sizeBytes: number
  /** The model that it was taken from, `library/tiny`: a registry that has that one needs no bytes. */
  readonly from?: string | undefined
}

export class Upload {
  readonly #file: UploadedFile
  readonly #registry: Registry
  readonly #pace: Pace
  #sentBytes = 0

  constructor(file: UploadedFile, registry: Registry, pace: Pace) {
    this.#file = file
    this.#registry = registry
    this.#pace = pace
  }

  get completedBytes(): number {
    return this.#sentBytes
  }

  /** Throws `upstream`. */
  async run(signal: AbortSignal): Promise<void> {
    const { digest, from, sizeBytes } = this.#file
    let place = await this.#registry.startUpload(digest, from, signal)
    let isContinued = false
    const attempt = async (): Promise<void> => {
      if (place && isContinued) place = await this.#registry.uploadPlace(place, signal)
      isContinued = true
      place ??= await this.#registry.startUpload(digest, undefined, signal)
      while (place && place.offset < sizeBytes) place = await this.#sendPart(place, signal)
      if (place) await this.#registry.finishUpload(place, digest, signal)
    }
    if (place) await retry(attempt, () => place?.offset ?? 0, this.#pace, signal)
    this.#sentBytes = sizeBytes
  }

  #sendPart(place: UploadPlace, signal: AbortSignal): Promise<UploadPlace> {
    const { sizeBytes } = this.#file
    const size = planParts(sizeBytes, this.#pace.partBytes)[0]?.size ?? 0
    const end = Math.min(place.offset + size, sizeBytes)
    const body = (): Readable => Readable.from(this.#bytes(place.offset, end), { objectMode: false })
    return withStallWatch(
      (either) => this.#registry.uploadPart(place, end - place.offset, body, either),
      () => this.#sentBytes,
      this.#pace,
      signal,
    )
  }

  async *#bytes(start: number, end: number): AsyncGenerator<Buffer> {
    this.#sentBytes = start
    for await (const chunk of createReadStream(this.#file.path, {
      start,
      end: end - 1,
      highWaterMark: pieceBytes,
    })) {
      yield chunk
      this.#sentBytes += chunk.length
    }
  }
}
