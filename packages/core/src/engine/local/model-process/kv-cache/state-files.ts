/**
 * Files with KV states of sequences. llama.cpp ends the process if a file is damaged, and does not notice if a
 * file was replaced. So the size and digest of each file are checked before it is loaded.
 */
import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync, rmSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'

export interface StateFile {
  readonly file: string
  readonly sizeBytes: number
  readonly digest: string
}

export class StateFiles {
  readonly #folder: string
  #fileCount = 0

  /** @param folder private folder for the files, empty or not created yet */
  constructor(folder: string) {
    this.#folder = folder
  }

  /**
   * Writes a file, one at a time. Rejects if the disk is full.
   * @param write saves a state to the file and returns its size in bytes
   */
  async write(write: (file: string) => Promise<number>): Promise<StateFile> {
    const unfinished = join(this.#folder, 'unfinished')
    const file = join(this.#folder, String(++this.#fileCount))
    try {
      ensureFolder(this.#folder)
      const written = await write(unfinished)
      const { sizeBytes, digest } = await hashFile(unfinished)
      // When the library closes the file, it does not check whether the last bytes were written.
      if (sizeBytes !== written) throw new Error('The disk is full.')
      await rename(unfinished, file)
      return { file, sizeBytes, digest }
    } catch (cause) {
      removePath(unfinished)
      throw cause
    }
  }

  /**
   * Loads a file. Returns `false` if the file has changed or cannot be loaded. In this case, the state of the
   * sequence is unknown.
   * @param load loads the state from the file and returns its number of tokens
   */
  async load(
    { file, sizeBytes, digest }: StateFile,
    tokenCount: number,
    load: (file: string) => Promise<number>,
  ): Promise<boolean> {
    try {
      const found = await hashFile(file)
      const isSame = found.sizeBytes === sizeBytes && found.digest === digest
      return isSame && (await load(file)) === tokenCount
    } catch {
      // The file is missing, or the decoder rejects it.
      return false
    }
  }

  remove({ file }: Pick<StateFile, 'file'>): void {
    removePath(file)
  }

  removeAll(): void {
    removePath(this.#folder)
  }
}

async function hashFile(file: string): Promise<Pick<StateFile, 'sizeBytes' | 'digest'>> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of createReadStream(file, { highWaterMark: 2 ** 20 })) {
    hash.update(piece)
    sizeBytes += piece.length
  }
  return { sizeBytes, digest: hash.digest('hex') }
}

/** Creates the folder, also after a cleanup of temporary files has removed it. */
function ensureFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

export function removePath(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // The file belongs to another user, or is removed later with its folder.
  }
}
