/**
 * Manifests on disk, by name. Paths are the same as in Ollama: `manifests/<host>/<namespace>/<model>/<tag>`.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rm, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { LRUCache } from 'lru-cache'
import { LlmError } from '../../errors.ts'
import { withFileLock } from '../../util/files/file-lock.ts'
import { renameOver } from '../../util/files/rename-over.ts'
import type { BlobStore } from './blobs.ts'
import { type Digest, digestOf } from './digest.ts'
import { readOnlyError, statOf, syncFolder, toDiskError, withFile } from './disk.ts'
import { digestsOf, type Manifest, maxManifestBytes, parseManifest } from './manifest.ts'
import {
  findSpellings,
  listNames,
  manifestPath,
  removeEmptyFolders,
  resolveSpelling,
} from './manifest-paths.ts'
import { displayName, expectStorable, type ModelName } from './name.ts'
import type { ManifestEntry, Manifests } from './store-contracts.ts'

/** How long unreferenced blobs are kept. Clients upload blobs before the manifest that references them. */
const graceMs = 60 * 60_000
/** Dates that differ by less than this count as equal, since file dates are coarse. */
const toleranceMs = 1_000
const maxCachedManifests = 1_024

const isDiskCaseInsensitive = process.platform === 'darwin' || process.platform === 'win32'

interface CachedManifest {
  /** Date, size and inode of the file, to detect changes. */
  readonly stamp: string
  /** Absent if the file is not a manifest. */
  readonly entry: ManifestEntry | undefined
}

export class ManifestStore implements Manifests {
  readonly #roots: readonly string[]
  readonly #folders: readonly string[]
  readonly #blobs: BlobStore
  /** Manifests by path. */
  #cache: Promise<LRUCache<string, CachedManifest>> | undefined
  /**
   * Maps each blob of a removed or replaced manifest to the date of this manifest. A blob with a later date
   * was uploaded again.
   */
  readonly #referencedAt = new Map<Digest, Date>()

  /** @param roots folders that contain `manifests/`. The store writes to the first folder only */
  constructor(roots: readonly string[], blobs: BlobStore) {
    this.#roots = roots
    this.#folders = roots.map((root) => join(root, 'manifests'))
    this.#blobs = blobs
  }

  async list(): Promise<readonly ManifestEntry[]> {
    const lists = await Promise.all(this.#folders.map((folder) => this.#listFolder(folder)))
    return lists.flat().flatMap(({ entry }) => entry ?? [])
  }

  /** Returns the names of models whose manifests are damaged or cannot be read. `list()` omits them. */
  async listDamaged(): Promise<readonly string[]> {
    const lists = await Promise.all(this.#folders.map((folder) => this.#listFolder(folder)))
    return lists.flat().flatMap(({ name, entry }) => (entry ? [] : [displayName(name)]))
  }

  async find(name: ModelName): Promise<ManifestEntry | undefined> {
    // On a case-insensitive disk, a path matches every spelling, and the entry could get a wrong name.
    for (const folder of isDiskCaseInsensitive ? [] : this.#folders) {
      const entry = await this.#readEntry(folder, name)
      if (entry) return entry
    }
    for (const folder of this.#folders) {
      for (const spelled of await findSpellings(folder, name)) {
        const entry = await this.#readEntry(folder, spelled)
        if (entry) return entry
      }
    }
    return undefined
  }

  async write(name: ModelName, bytes: Uint8Array): Promise<Manifest | undefined> {
    expectStorable(name)
    const manifest = parseManifest(bytes)
    if (!manifest) throw new LlmError('upstream', `The manifest of "${displayName(name)}" is invalid.`)
    return this.#withStoreLock(async (folder, expectOwned) => {
      for (const digest of digestsOf(manifest)) {
        if (!(await this.#blobs.find(digest)))
          throw new LlmError('conflict', `The blob ${digest} of the model "${displayName(name)}" is missing.`)
      }
      const spelled = await resolveSpelling(folder, name)
      const before = await this.#readEntry(folder, spelled)
      await replaceFile(
        join(folder, `.new-${randomUUID()}`),
        manifestPath(folder, spelled),
        bytes,
        expectOwned,
      )
      this.#noteReferences(before)
      return before?.manifest
    })
  }

  async remove(name: ModelName): Promise<void> {
    await this.#withStoreLock(async (folder, expectOwned) => {
      const spelled = await resolveSpelling(folder, name)
      this.#noteReferences(await this.#readEntry(folder, spelled))
      const path = manifestPath(folder, spelled)
      await expectOwned()
      await rm(path, { force: true })
      await removeEmptyFolders(dirname(path), 3)
    })
  }

  async removeDamaged(name: ModelName): Promise<boolean> {
    const [root] = this.#folders
    if (root === undefined || !(await findDamaged(root, name))) return false
    return this.#withStoreLock(async (folder, expectOwned) => {
      const path = await findDamaged(folder, name)
      if (path === undefined) return false
      await expectOwned()
      await rm(path)
      await removeEmptyFolders(dirname(path), 3)
      return true
    })
  }

  async prune(candidates: readonly Digest[]): Promise<readonly Digest[]> {
    return this.#withStoreLock(async (_folder, expectOwned) => {
      const removed: Digest[] = []
      const referenced = await this.#readReferencedBlobs()
      for (const digest of referenced ? new Set(candidates) : []) {
        const writtenAt = await this.#blobs.writtenAt(digest)
        const isRetained = !writtenAt || referenced?.has(digest) || this.#isInUse(digest, writtenAt)
        this.#referencedAt.delete(digest)
        if (isRetained) continue
        await expectOwned()
        await this.#blobs.remove(digest)
        removed.push(digest)
      }
      return removed
    })
  }

  /** Removes blobs and temporary files that are older than an hour, unless a manifest references them. */
  async sweep(): Promise<void> {
    await this.#withStoreLock(async (folder, expectOwned) => {
      const referenced = await this.#readReferencedBlobs()
      if (!referenced) return
      const blobs = (await this.#blobs.list()).filter(({ digest }) => !digest || !referenced.has(digest))
      for (const { path, modifiedAt } of [...blobs, ...(await listLeftovers(folder))]) {
        if (Date.now() - modifiedAt.getTime() <= graceMs) continue
        await expectOwned()
        await rm(path, { force: true })
      }
    })
  }

  #isInUse(digest: Digest, writtenAt: Date): boolean {
    const referencedAt = this.#referencedAt.get(digest)?.getTime() ?? 0
    const isYounger = writtenAt.getTime() > referencedAt + toleranceMs
    return isYounger && Date.now() - writtenAt.getTime() < graceMs
  }

  #noteReferences(entry: ManifestEntry | undefined): void {
    if (entry)
      for (const digest of digestsOf(entry.manifest)) this.#referencedAt.set(digest, entry.modifiedAt)
  }

  /**
   * Returns `undefined` if a manifest is damaged or a folder cannot be read, since references may then be
   * unknown.
   */
  async #readReferencedBlobs(): Promise<ReadonlySet<Digest> | undefined> {
    const referenced = new Set<Digest>()
    let isKnown = true
    const onUnreadable = (): void => {
      isKnown = false
    }
    for (const folder of this.#folders) {
      for (const { entry } of await this.#listFolder(folder, onUnreadable)) {
        if (!entry) return undefined
        for (const digest of digestsOf(entry.manifest)) referenced.add(digest)
      }
    }
    return isKnown ? referenced : undefined
  }

  /**
   * Runs one change at a time, across processes. While a manifest is written, pruning must not remove its
   * blobs.
   */
  async #withStoreLock<T>(
    work: (folder: string, expectOwned: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const [folder] = this.#folders
    if (folder === undefined) throw readOnlyError()
    try {
      await mkdir(folder, { recursive: true })
      return await withFileLock(join(folder, '.lock'), new AbortController().signal, (_lost, expectOwned) =>
        work(folder, expectOwned),
      )
    } catch (error) {
      throw toDiskError(error)
    }
  }

  async #listFolder(
    folder: string,
    onUnreadable?: () => void,
  ): Promise<readonly { name: ModelName; entry: ManifestEntry | undefined }[]> {
    const names = await listNames(folder, onUnreadable)
    return Promise.all(names.map(async (name) => ({ name, entry: await this.#readEntry(folder, name) })))
  }

  /** Returns `undefined` for a missing or damaged manifest. */
  async #readEntry(folder: string, name: ModelName): Promise<ManifestEntry | undefined> {
    const path = manifestPath(folder, name)
    this.#cache ??= createCache()
    const cache = await this.#cache
    const info = await statOf(path)
    if (!info?.isFile()) {
      cache.delete(path)
      return undefined
    }
    const stamp = `${info.mtimeMs} ${info.size} ${info.ino}`
    const cached = cache.get(path)
    if (cached?.stamp === stamp) return cached.entry
    const isTooLarge = info.size > maxManifestBytes
    const bytes = isTooLarge ? undefined : await readFile(path).catch(() => undefined)
    // The failure is not cached, since the next read may succeed.
    if (!bytes && !isTooLarge) return undefined
    const manifest = bytes && parseManifest(bytes)
    const entry = manifest && {
      name,
      manifest,
      bytes,
      digest: digestOf(bytes),
      modifiedAt: info.mtime,
      root: this.#roots[this.#folders.indexOf(folder)] ?? '',
      isReadOnly: folder !== this.#folders[0],
    }
    cache.set(path, { stamp, entry })
    return entry
  }
}

/** Imports `lru-cache` when the first manifest is read, so that an app starts without it. */
async function createCache(): Promise<LRUCache<string, CachedManifest>> {
  const { LRUCache } = await import('lru-cache')
  return new LRUCache({ max: maxCachedManifests })
}

/** Returns the path of the manifest if it is damaged. */
async function findDamaged(folder: string, name: ModelName): Promise<string | undefined> {
  const path = manifestPath(folder, await resolveSpelling(folder, name))
  const info = await statOf(path)
  if (!info?.isFile()) return undefined
  return info.size <= maxManifestBytes && parseManifest(await readFile(path)) ? undefined : path
}

async function replaceFile(
  temporary: string,
  path: string,
  bytes: Uint8Array,
  expectOwned: () => Promise<void>,
): Promise<void> {
  try {
    await withFile(temporary, 'wx', async (file) => {
      await file.writeFile(bytes)
      await file.sync()
    })
    // Dates the manifest by the clock of this machine, because its date is compared with the dates of blobs.
    // The disk may have another clock.
    const now = new Date()
    await utimes(temporary, now, now)
    await mkdir(dirname(path), { recursive: true })
    await expectOwned()
    await renameOver(temporary, path)
    await syncFolder(dirname(path))
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Lists temporary files that killed processes have left behind. */
async function listLeftovers(
  folder: string,
): Promise<readonly { readonly path: string; readonly modifiedAt: Date }[]> {
  const paths = (await readdir(folder))
    .filter((file) => /^\.(?:new|lock)-/.test(file))
    .map((file) => join(folder, file))
  return Promise.all(
    paths.map(async (path) => ({
      path,
      modifiedAt: (await statOf(path))?.mtime ?? new Date(),
    })),
  )
}
