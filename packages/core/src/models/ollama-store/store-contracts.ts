/** What the parts of the model store are to each other. */
import type { Digest } from './digest.ts'
import type { Manifest } from './manifest.ts'
import type { ModelName } from './name.ts'

/** Content-addressed files: written once, checked always. A file that is visible here is whole. */
export interface Blobs {
  /** In whichever folder it lies. */
  find(digest: Digest): Promise<{ readonly path: string; readonly sizeBytes: number } | undefined>
  /** Finds it, and whoever prunes sees that somebody wants it. */
  touch(digest: Digest): ReturnType<Blobs['find']>
  /** The whole of a small one. Throws `upstream` for one that is not there, or larger. */
  read(digest: Digest, maxBytes: number): Promise<Buffer>
  /**
   * Throws `invalid_request` when the bytes have another digest; they are kept under that, then. Nobody waits for another: of
   * several that write the same one, the first that has all of it is seen.
   */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
  /** A small one, whatever its digest is. */
  add(
    bytes: Uint8Array,
  ): Promise<{ readonly digest: Digest; readonly sizeBytes: number; readonly isNew: boolean }>
  /** The same of a file, which is read once. Rejects with the signal's reason when that aborts; throws `too_large`. */
  copy(path: string, signal: AbortSignal): ReturnType<Blobs['add']>
  /** Where a download may put what it has so far: `<blob>-partial`, and files whose names begin so. In the folder that is written to. */
  partialPath(digest: Digest): Promise<string>
  /** For who has it locked: takes all of the room that the download needs, also from other processes. Throws `too_large`. */
  reserve(digest: Digest, sizeBytes: number, signal: AbortSignal): Promise<void>
  /**
   * Reads the partial file; whole and right, it becomes the blob at once. Throws `upstream` where it is not, and removes it.
   *
   * @param actual its digest, where who wrote it has read it already
   */
  commit(digest: Digest, signal: AbortSignal, actual?: Digest): Promise<void>
  /** Nobody else on this machine downloads this blob meanwhile. Waits for who does. The work is told when that is true no more. */
  withDownloadLock<T>(
    digest: Digest,
    signal: AbortSignal,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T>
  /** Throws `too_large` where the folder's budget or its disk has no room for so many bytes more. */
  expectSpace(bytes: number): Promise<void>
}

/** Which names there are, and what they mean. Names are found whatever their case. */
export interface Manifests {
  list(): Promise<readonly ManifestEntry[]>
  find(name: ModelName): Promise<ManifestEntry | undefined>
  /** Exactly these bytes, at once or not at all; the spelling that is there already is kept. Returns what stood there before. */
  write(name: ModelName, bytes: Uint8Array): Promise<Manifest | undefined>
  /** And folders that are empty then. */
  remove(name: ModelName): Promise<void>
  /** A file that is no manifest, and so nobody's model. Tells whether there was one. */
  removeDamaged(name: ModelName): Promise<boolean>
  /** Blobs of these that no manifest names any more. Not those that somebody has just written. */
  prune(candidates: readonly Digest[]): Promise<readonly Digest[]>
}

export interface ManifestEntry {
  readonly name: ModelName
  readonly manifest: Manifest
  /** As they lie there. */
  readonly bytes: Buffer
  /** Of those. */
  readonly digest: Digest
  readonly modifiedAt: Date
  /** The folder of models in which it lies. */
  readonly root: string
  /** That is not written to. */
  readonly isReadOnly: boolean
}
