/** Uploads a blob part by part, resuming at the offset that the registry reports. */
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { Digest } from '../ollama-store/digest.ts'
import { planParts } from '../ollama-store/partial.ts'
import type { Registry, UploadSession } from './registry.ts'
import { retry, type TransferPolicy, withStallWatch } from './retry.ts'

/** Bytes per chunk. With small chunks, `withStallWatch` can see progress on a slow connection. */
const pieceBytes = 16 * 1024

export interface UploadedFile {
  readonly digest: Digest
  readonly path: string
  readonly sizeBytes: number
  /** Repository of the base model, such as `library/tiny`. The registry can mount the blob from it. */
  readonly from?: string | undefined
}

export class Upload {
  readonly #file: UploadedFile
  readonly #registry: Registry
  readonly #policy: TransferPolicy
  #sentBytes = 0

  constructor(file: UploadedFile, registry: Registry, policy: TransferPolicy) {
    this.#file = file
    this.#registry = registry
    this.#policy = policy
  }

  get completedBytes(): number {
    return this.#sentBytes
  }

  /** Throws an `LlmError`: `upstream`, or `permission` if the registry denies access. */
  async run(signal: AbortSignal): Promise<void> {
    const { digest, from, sizeBytes } = this.#file
    let session = await this.#registry.startUpload(digest, from, signal)
    let isContinued = false
    const attempt = async (): Promise<void> => {
      if (session && isContinued) session = await this.#registry.fetchUploadSession(session, signal)
      isContinued = true
      session ??= await this.#registry.startUpload(digest, undefined, signal)
      while (session && session.offset < sizeBytes) session = await this.#sendPart(session, signal)
      if (session) await this.#registry.finishUpload(session, digest, signal)
    }
    if (session) await retry(attempt, () => session?.offset ?? 0, this.#policy, signal)
    this.#sentBytes = sizeBytes
  }

  #sendPart(session: UploadSession, signal: AbortSignal): Promise<UploadSession> {
    const { sizeBytes } = this.#file
    const size = planParts(sizeBytes, this.#policy.partBytes)[0]?.size ?? 0
    const end = Math.min(session.offset + size, sizeBytes)
    const body = (): Readable => Readable.from(this.#bytes(session.offset, end), { objectMode: false })
    return withStallWatch(
      (combinedSignal) => this.#registry.uploadPart(session, end - session.offset, body, combinedSignal),
      () => this.#sentBytes,
      this.#policy,
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
