/** Interfaces between the parts of the model store. */
import type { Digest } from './digest.ts'
import type { Manifest } from './manifest.ts'
import type { ModelName } from './name.ts'

/** Content-addressed files. Every blob that can be found is complete and verified. */
export interface Blobs {
  /** Searches all folders for a blob. */
  find(digest: Digest): Promise<{ readonly path: string; readonly sizeBytes: number } | undefined>
  /** Finds a blob and renews its date, so that it is not pruned. */
  touch(digest: Digest): ReturnType<Blobs['find']>
  /** Reads a small blob. Throws an `LlmError` `upstream` if it is missing, damaged or over `maxBytes`. */
  read(digest: Digest, maxBytes: number): Promise<Buffer>
  /**
   * Stores a blob. If the bytes have another digest, stores them under that digest and throws
   * `invalid_request`. Writers do not wait for each other. The first writer to finish publishes the blob.
   */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
  /** Stores a small blob. */
  add(
    bytes: Uint8Array,
  ): Promise<{ readonly digest: Digest; readonly sizeBytes: number; readonly isNew: boolean }>
  /**
   * Copies a file into the store. Reads the file just once. Rejects with the signal's reason if the signal
   * aborts. Throws `too_large`.
   */
  copy(path: string, signal: AbortSignal): ReturnType<Blobs['add']>
  /**
   * Path of a partial download in the writable folder, `<blob>-partial`. Paths of state files begin with it.
   */
  partialPath(digest: Digest): Promise<string>
  /**
   * Reserves disk space for a download, across processes. The caller must hold the lock of the download.
   * Throws `too_large`.
   */
  reserve(digest: Digest, sizeBytes: number, signal: AbortSignal): Promise<void>
  /**
   * Verifies the partial file and publishes it as the blob. Throws `upstream` for a wrong digest, and removes
   * the file.
   *
   * @param actual digest of the file, if the caller has computed it
   */
  commit(digest: Digest, signal: AbortSignal, actual?: Digest): Promise<void>
  /** Runs `work` when no other process downloads the blob. `lost` aborts when the lock is lost. */
  withDownloadLock<T>(
    digest: Digest,
    signal: AbortSignal,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T>
  /** Throws `too_large` if the limit or the disk has no space for `bytes` more bytes. */
  expectSpace(bytes: number): Promise<void>
}

/** Manifests by name. Lookups ignore case. */
export interface Manifests {
  list(): Promise<readonly ManifestEntry[]>
  find(name: ModelName): Promise<ManifestEntry | undefined>
  /** Writes the bytes atomically. An existing name keeps its case. Returns the replaced manifest. */
  write(name: ModelName, bytes: Uint8Array): Promise<Manifest | undefined>
  /** Removes the manifest, and folders that become empty. */
  remove(name: ModelName): Promise<void>
  /** Removes the file of this name if it is not a valid manifest. Returns whether a file was removed. */
  removeDamaged(name: ModelName): Promise<boolean>
  /** Removes and returns the candidates that no manifest references, except recent uploads. */
  prune(candidates: readonly Digest[]): Promise<readonly Digest[]>
}

export interface ManifestEntry {
  readonly name: ModelName
  readonly manifest: Manifest
  /** Content of the manifest file. */
  readonly bytes: Buffer
  /** Digest of `bytes`. */
  readonly digest: Digest
  readonly modifiedAt: Date
  /** Model folder that contains the manifest. */
  readonly root: string
  /** Whether `root` is a read-only folder. */
  readonly isReadOnly: boolean
}
