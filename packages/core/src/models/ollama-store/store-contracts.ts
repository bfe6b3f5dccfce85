/** The contracts between the parts of the model store. */
import type { Digest } from './digest.ts'
import type { Manifest } from './manifest.ts'
import type { ModelName } from './name.ts'

/** Content-addressed files. A visible blob is complete and verified. */
export interface Blobs {
  /** Searches all folders. */
  find(digest: Digest): Promise<{ readonly path: string; readonly sizeBytes: number } | undefined>
  /** Finds a blob and renews its date, so that it is not pruned. */
  touch(digest: Digest): ReturnType<Blobs['find']>
  /** Reads a small blob. Throws `upstream` for one that is missing, damaged or larger than `maxBytes`. */
  read(digest: Digest, maxBytes: number): Promise<Buffer>
  /**
   * Throws `invalid_request` when the bytes have another digest; they are stored under that one. Writers do not wait for
   * each other: the first to finish publishes the blob.
   */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
  /** Stores a small blob. */
  add(
    bytes: Uint8Array,
  ): Promise<{ readonly digest: Digest; readonly sizeBytes: number; readonly isNew: boolean }>
  /** Stores a file, reading it once. Rejects with the signal's reason when the signal aborts. Throws `too_large`. */
  copy(path: string, signal: AbortSignal): ReturnType<Blobs['add']>
  /** Path prefix of a download's files in the writable folder: `<blob>-partial`. */
  partialPath(digest: Digest): Promise<string>
  /** Reserves the space of a download across processes; the caller holds its lock. Throws `too_large`. */
  reserve(digest: Digest, sizeBytes: number, signal: AbortSignal): Promise<void>
  /**
   * Verifies the partial file and publishes it as the blob. Throws `upstream` for a wrong digest, and removes the file.
   *
   * @param actual digest of the file, where the caller has computed it
   */
  commit(digest: Digest, signal: AbortSignal, actual?: Digest): Promise<void>
  /** Waits until no other process downloads the blob. `lost` aborts when the lock is lost. */
  withDownloadLock<T>(
    digest: Digest,
    signal: AbortSignal,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T>
  /** Throws `too_large` where the limit or the disk has no space for `bytes` more. */
  expectSpace(bytes: number): Promise<void>
}

/** Manifests by name. Lookups ignore case. */
export interface Manifests {
  list(): Promise<readonly ManifestEntry[]>
  find(name: ModelName): Promise<ManifestEntry | undefined>
  /** Writes the bytes atomically, keeping an existing spelling of the name. Returns the replaced manifest. */
  write(name: ModelName, bytes: Uint8Array): Promise<Manifest | undefined>
  /** Removes the manifest, and folders that become empty. */
  remove(name: ModelName): Promise<void>
  /** Removes a file that is no valid manifest. Returns whether there was one. */
  removeDamaged(name: ModelName): Promise<boolean>
  /** Removes the candidates that no manifest references, except recent uploads. */
  prune(candidates: readonly Digest[]): Promise<readonly Digest[]>
}

export interface ManifestEntry {
  readonly name: ModelName
  readonly manifest: Manifest
  /** The file's content. */
  readonly bytes: Buffer
  /** Digest of `bytes`. */
  readonly digest: Digest
  readonly modifiedAt: Date
  /** The model folder that contains it. */
  readonly root: string
  /** Whether `root` is a read-only folder. */
  readonly isReadOnly: boolean
}
