/**
 * Files with KV states of sequences. llama.cpp ends the process if a file is damaged, and does not notice if a
 * file was replaced. So the size and digest of each file are checked before it is loaded.
 */
import { fstatSync, mkdirSync, openSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { FileHash } from './file-hash.ts'

export interface StateFile {
  readonly file: string
  readonly sizeBytes: number
  /** SHA-256, which may still be computed. `undefined` if the file cannot be read. */
  readonly digest: Promise<string | undefined>
}

export interface StateFilesOptions {
  /** Clock in ms. */
  readonly now?: () => number
  /** Free space for files, in bytes. @default the free space of the disk */
  readonly measureFree?: (() => number) | undefined
  /** Called while files are written and read, which may take longer than decode steps. */
  readonly onProgress?: () => void
  /** Called when files cannot be written any more, but not again until a file was written. */
  readonly onWriteFailure?: (failure: WriteFailure) => void
}

interface WriteFailure {
  readonly folder: string
  readonly freeBytes: number
}

/** Time from a failed write until the next attempt, in ms. If too little space was free, enough space ends it. */
const pauseMs = 10_000

export class StateFiles {
  readonly #folder: string
  readonly #now: () => number
  readonly #measureFree: () => number
  readonly #onProgress: () => void
  readonly #onWriteFailure: (failure: WriteFailure) => void
  #fileCount = 0
  /** Hash of the last written file. Files are hashed one at a time. */
  #hashing: Promise<unknown> = Promise.resolve()
  /** Time until which no file is written, and the space that ends the pause. */
  #pause: { readonly until: number; readonly neededBytes: number } | undefined
  #isFailureReported = false

  /** @param folder private folder for the files, empty or not created yet */
  constructor(folder: string, options: StateFilesOptions = {}) {
    this.#folder = folder
    this.#now = options.now ?? (() => performance.now())
    this.#measureFree = options.measureFree ?? (() => measureFreeSpace(folder))
    this.#onProgress = options.onProgress ?? (() => {})
    this.#onWriteFailure = options.onWriteFailure ?? (() => {})
  }

  /** Whether no file is written for now, since the last one could not be written. */
  get isPaused(): boolean {
    if (!this.#pause) return false
    const { until, neededBytes } = this.#pause
    if (this.#now() < until && this.#measureFree() < neededBytes) return true
    this.#pause = undefined
    return false
  }

  /**
   * Writes a file, one at a time. Its digest is computed while it is written and afterwards. Returns `undefined`
   * if the disk is full.
   * @param expectedBytes minimum size of the file. The file is not written if less space is free
   * @param write saves a state to the file and returns its size in bytes
   */
  async write(
    expectedBytes: number,
    write: (file: string) => Promise<number>,
  ): Promise<StateFile | undefined> {
    if (this.isPaused) return undefined
    const file = join(this.#folder, String(++this.#fileCount))
    let hash: FileHash | undefined
    try {
      ensureFolder(this.#folder)
      if (this.#measureFree() < expectedBytes) {
        this.#fail(expectedBytes)
        return undefined
      }
      // The decoder writes the same file.
      const fd = openSync(file, 'w+', 0o600)
      hash = new FileHash(fd, this.#onProgress, this.#hashing)
      this.#hashing = hash.digest
      const sizeBytes = await write(file)
      // When the library closes the file, it does not check whether the last bytes were written.
      if (fstatSync(fd).size !== sizeBytes) throw new Error('The disk is full.')
      hash.setSize(sizeBytes)
      this.#isFailureReported = false
      return { file, sizeBytes, digest: hash.digest }
    } catch {
      hash?.abandon()
      removePath(file)
      // Not all limits of a disk are visible, such as a quota.
      this.#fail(Number.POSITIVE_INFINITY)
      return undefined
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
      const hash = new FileHash(openSync(file, 'r'), this.#onProgress)
      hash.setSize(sizeBytes)
      const [expected, found] = await Promise.all([digest, hash.digest])
      return expected !== undefined && found === expected && (await load(file)) === tokenCount
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

  #fail(neededBytes: number): void {
    this.#pause = { until: this.#now() + pauseMs, neededBytes }
    if (this.#isFailureReported) return
    this.#isFailureReported = true
    this.#onWriteFailure({ folder: this.#folder, freeBytes: this.#measureFree() })
  }
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

/** Free space of a disk, in bytes. */
export function measureFreeSpace(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return 0
  }
}
