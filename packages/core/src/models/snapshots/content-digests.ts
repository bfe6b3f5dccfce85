/**
 * Hashes the contents of standalone GGUF files in the background, one file after the other. Gigabytes take seconds to
 * minutes.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Model } from '../model.ts'

/** Bytes to hash at once, about 1 ms of work. */
const pieceBytes = 512 * 1024

/** A standalone file. Its `digest` changes with its path, size and date. */
export type HashedModel = Pick<Model, 'path' | 'digest' | 'adapters'>

export class ContentDigests {
  readonly #running = new Map<string, Promise<string>>()
  readonly #closed = new AbortController()
  #last: Promise<unknown> = Promise.resolve()

  /** Digest of the contents, as 64 hexadecimal digits. Rejects if a file cannot be read. */
  hash(model: HashedModel): Promise<string> {
    const running = this.#running.get(model.digest)
    if (running) return running
    const hashed = this.#last
      .then(() => hashModel(model, this.#closed.signal))
      .finally(() => this.#running.delete(model.digest))
    this.#last = hashed.catch(() => {})
    this.#running.set(model.digest, hashed)
    return hashed
  }

  /** Ends all hashing. */
  async close(): Promise<void> {
    this.#closed.abort()
    await this.#last
  }
}

/** The SHA-256 of a single file. With further parts or LoRA adapters, the SHA-256 of all digests and scales. */
async function hashModel({ path, adapters = [] }: HashedModel, signal: AbortSignal): Promise<string> {
  const digests: string[] = []
  for (const part of [...(await partsOf(path)), ...adapters.map((adapter) => adapter.path)])
    digests.push(await hashFile(part, signal))
  const [first = '', ...others] = digests
  if (others.length === 0) return first
  const scales = adapters.map(({ scale }) => scale)
  return createHash('sha256')
    .update(JSON.stringify([digests, scales]))
    .digest('hex')
}

async function hashFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path, { highWaterMark: pieceBytes, signal })) hash.update(piece)
  return hash.digest('hex')
}

/** The files of a split model, in order. */
async function partsOf(path: string): Promise<readonly string[]> {
  const [, stem, count] = /^(.*)-00001-of-(\d{5})\.gguf$/.exec(basename(path)) ?? []
  if (stem === undefined) return [path]
  const files = await readdir(dirname(path))
  return files
    .filter((file) => file.startsWith(`${stem}-`) && file.endsWith(`-of-${count}.gguf`))
    .sort()
    .map((file) => join(dirname(path), file))
}
