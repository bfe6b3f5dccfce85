/**
 * Files with KV states of sequences, in a private folder of this process. llama.cpp ends the process if a
 * file is damaged, and does not notice if a file was replaced. So a file that has changed since it was written is
 * not loaded. This is known from its inode, size and dates: to hash it takes several times as long as to load it.
 * Damage that the file system itself does not notice, as by a broken disk, is not detected.
 */
import {
  type BigIntStats,
  closeSync,
  fstatSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { join } from 'node:path'

export interface StateFile {
  readonly file: string
  readonly sizeBytes: number
  /** Changes with each change of the file. */
  readonly version: string
}

export interface StateFilesOptions {
  /** Clock in ms. */
  readonly now?: () => number
  /** Free space for files, in bytes. @default the free space of the disk */
  readonly measureFree?: (() => number) | undefined
  /** Called when a file was written or loaded, and each second meanwhile, for as long as a slow disk may take. */
  readonly onProgress?: () => void
  /** Called when files cannot be written any more, but not again until a file was written. */
  readonly onWriteFailure?: (failure: WriteFailure) => void
}

interface WriteFailure {
  readonly folder: string
  readonly freeBytes: number
}

/** Time from a failed write until the next attempt, in ms. */
const failurePauseMs = 10_000
/** The same, if the write did not begin because too little space was free. */
const noSpacePauseMs = 1_000
/** Time that a file of any size may take to be written or loaded, in s. */
const maxTransferSeconds = 60
/** Further bytes that a slow disk writes or reads per second. */
const slowDiskBytesPerSecond = 20e6
/** How far the last change of a file is dated back, in s. The clocks of file systems take steps of up to 2 s. */
const backdatingSeconds = 60

export class StateFiles {
  readonly #folder: string
  readonly #now: () => number
  readonly #measureFree: () => number
  readonly #onProgress: () => void
  readonly #onWriteFailure: (failure: WriteFailure) => void
  #fileCount = 0
  /** Time until which no file is written, since the last one could not be written. */
  #pausedUntil = Number.NEGATIVE_INFINITY
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
    return this.#now() < this.#pausedUntil
  }

  /**
   * Writes a file, one at a time. Returns `undefined` if the disk is full.
   * @param expectedBytes minimum size of the file. The file is not written if less space is free
   * @param write saves a state to the file and returns its size in bytes
   */
  async write(
    expectedBytes: number,
    write: (file: string) => Promise<number>,
  ): Promise<StateFile | undefined> {
    if (this.isPaused) return undefined
    const file = join(this.#folder, String(++this.#fileCount))
    try {
      ensureFolder(this.#folder)
      if (this.#measureFree() < expectedBytes) {
        this.#fail(noSpacePauseMs)
        return undefined
      }
      const written = await this.#transfer(expectedBytes, () => writeStateFile(file, write))
      this.#isFailureReported = false
      return written
    } catch {
      removePath(file)
      // Not all limits of a disk are visible, such as a quota.
      this.#fail(failurePauseMs)
      return undefined
    }
  }

  /**
   * Loads a file. Returns `false` if the file has changed or cannot be loaded. In this case, the state of the
   * sequence is unknown.
   * @param load loads the state from the file and returns its number of tokens
   */
  async load(
    { file, sizeBytes, version }: StateFile,
    tokenCount: number,
    load: (file: string) => Promise<number>,
  ): Promise<boolean> {
    try {
      if (versionOf(lstatSync(file, { bigint: true })) !== version) return false
      return (await this.#transfer(sizeBytes, () => load(file))) === tokenCount
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

  /** Reports progress while native code works, since a process without progress is ended after 15 s. */
  async #transfer<T>(sizeBytes: number, work: () => Promise<T>): Promise<T> {
    let ticksLeft = maxTransferSeconds + sizeBytes / slowDiskBytesPerSecond
    const timer = setInterval(() => {
      if (ticksLeft-- > 0) this.#onProgress()
    }, 1_000)
    try {
      const result = await work()
      this.#onProgress()
      return result
    } finally {
      clearInterval(timer)
    }
  }

  #fail(pauseMs: number): void {
    this.#pausedUntil = this.#now() + pauseMs
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

async function writeStateFile(file: string, write: (file: string) => Promise<number>): Promise<StateFile> {
  const fd = openSync(file, 'w', 0o600)
  try {
    const sizeBytes = await write(file)
    // When the library closes the file, it does not check whether the last bytes were written.
    if (fstatSync(fd).size !== sizeBytes) throw new Error('The disk is full.')
    // A later change gets another date, even in the same step of the clock.
    const date = Math.floor(Date.now() / 1_000) - backdatingSeconds
    futimesSync(fd, date, date)
    return { file, sizeBytes, version: versionOf(fstatSync(fd, { bigint: true })) }
  } finally {
    closeSync(fd)
  }
}

const versionOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(' ')

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
