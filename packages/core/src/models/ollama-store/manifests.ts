/** The names on disk, and what they mean. Shape: `manifests/<host>/<namespace>/<model>/<tag>` of Ollama's store. */
import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { LlmError } from '../../errors.ts'
import { withLock } from '../../util/file-lock.ts'
import type { BlobStore } from './blobs.ts'
import { type Digest, digestOf, parseDigest } from './digest.ts'
import { diskError, readOnly, syncFolder } from './disk.ts'
import type { Manifest } from './manifest.ts'
import { namesIn, pathOf, removeEmpty, spelledAs, spellings } from './manifest-paths.ts'
import { displayName, type ModelName } from './name.ts'
import type { Entry, Manifests } from './store-contracts.ts'

/** The largest there are have some thousand layers. */
export const maxManifestBytes = 1024 * 1024
/** So long a blob is kept that nobody names: somebody may be about to. */
const graceMs = 60 * 60_000
/** Clocks of disks are coarse. */
const toleranceMs = 1_000
/** Manifests of so many names are kept in memory. */
const maxEntries = 1_024

const disksIgnoreCase = process.platform === 'darwin' || process.platform === 'win32'

const Layer = z.object({
  mediaType: z.string(),
  digest: z.string().transform((text, context): Digest => {
    const digest = parseDigest(text)
    if (digest) return digest
    context.addIssue('no digest')
    return z.NEVER
  }),
  size: z.int().min(0),
  from: z.string().optional(),
})

const ManifestFile = z.object({
  config: Layer,
  layers: z
    .array(Layer)
    .nullish()
    .transform((layers) => layers ?? []),
})

/** Nothing where the bytes are no manifest. */
export function parseManifest(bytes: Uint8Array): Manifest | undefined {
  if (bytes.length > maxManifestBytes) return undefined
  try {
    const { success, data } = ManifestFile.safeParse(JSON.parse(Buffer.from(bytes).toString()))
    return success ? (data as Manifest) : undefined
  } catch {
    return undefined
  }
}

/** Every blob that a manifest names. */
export const digestsOf = ({ config, layers }: Manifest): readonly Digest[] =>
  [config, ...layers].map(({ digest }) => digest)

export class ManifestStore implements Manifests {
  readonly #roots: readonly string[]
  readonly #folders: readonly string[]
  readonly #blobs: BlobStore
  readonly #entries = new Map<string, { readonly stamp: string; readonly entry: Entry | undefined }>()
  /** When the manifests were written that named these before: a blob which is younger is wanted by somebody else. */
  readonly #named = new Map<Digest, Date>()

  /** @param roots folders with `manifests/` in them; the first is written to, the others are only read */
  constructor(roots: readonly string[], blobs: BlobStore) {
    this.#roots = roots
    this.#folders = roots.map((root) => join(root, 'manifests'))
    this.#blobs = blobs
  }

  async list(): Promise<readonly Entry[]> {
    const lists = await Promise.all(this.#folders.map((folder) => this.#listIn(folder)))
    return lists.flat().flatMap(({ entry }) => entry ?? [])
  }

  async find(name: ModelName): Promise<Entry | undefined> {
    // Where the disk does not tell case, it would be found under whatever spelling it was asked for.
    for (const folder of disksIgnoreCase ? [] : this.#folders) {
      const entry = await this.#read(folder, name)
      if (entry) return entry
    }
    for (const folder of this.#folders) {
      for (const spelled of await spellings(folder, name)) {
        const entry = await this.#read(folder, spelled)
        if (entry) return entry
      }
    }
    return undefined
  }

  async write(name: ModelName, bytes: Uint8Array): Promise<Manifest | undefined> {
    const manifest = parseManifest(bytes)
    if (!manifest) throw new LlmError('upstream', `What is to be ${displayName(name)} is no manifest.`)
    return this.#changing(async (folder, expectMine) => {
      for (const digest of digestsOf(manifest)) {
        if (!(await this.#blobs.find(digest)))
          throw new LlmError('conflict', `The blob ${digest} of the model "${displayName(name)}" is gone.`)
      }
      const spelled = await spelledAs(folder, name)
      const before = await this.#read(folder, spelled)
      await replace(join(folder, `.new-${randomUUID()}`), pathOf(folder, spelled), bytes, expectMine)
      this.#wasNamed(before)
      return before?.manifest
    })
  }

  async remove(name: ModelName): Promise<void> {
    await this.#changing(async (folder, expectMine) => {
      const spelled = await spelledAs(folder, name)
      this.#wasNamed(await this.#read(folder, spelled))
      const path = pathOf(folder, spelled)
      await expectMine()
      await rm(path, { force: true })
      await removeEmpty(dirname(path), 3)
    })
  }

  async removeDamaged(name: ModelName): Promise<boolean> {
    const [root] = this.#folders
    if (root === undefined || !(await damagedAt(root, name))) return false
    return this.#changing(async (folder, expectMine) => {
      const path = await damagedAt(folder, name)
      if (path === undefined) return false
      await expectMine()
      await rm(path)
      await removeEmpty(dirname(path), 3)
      return true
    })
  }

  async prune(candidates: readonly Digest[]): Promise<readonly Digest[]> {
    return this.#changing(async (_folder, expectMine) => {
      const removed: Digest[] = []
      const named = await this.#namedBlobs()
      for (const digest of named ? new Set(candidates) : []) {
        const writtenAt = await this.#blobs.writtenAt(digest)
        const isKept = !writtenAt || named?.has(digest) || this.#isWanted(digest, writtenAt)
        this.#named.delete(digest)
        if (isKept) continue
        await expectMine()
        await this.#blobs.remove(digest)
        removed.push(digest)
      }
      return removed
    })
  }

  /** Whatever lies there for more than an hour, and no manifest names: also what was left half done. */
  async sweep(): Promise<void> {
    await this.#changing(async (folder, expectMine) => {
      const named = await this.#namedBlobs()
      if (!named) return
      const blobs = (await this.#blobs.list()).filter(({ digest }) => !digest || !named.has(digest))
      for (const { path, modifiedAt } of [...blobs, ...(await leftIn(folder))]) {
        if (Date.now() - modifiedAt.getTime() <= graceMs) continue
        await expectMine()
        await rm(path, { force: true })
      }
    })
  }

  #isWanted(digest: Digest, writtenAt: Date): boolean {
    const namedAt = this.#named.get(digest)?.getTime() ?? 0
    const isYounger = writtenAt.getTime() > namedAt + toleranceMs
    return isYounger && Date.now() - writtenAt.getTime() < graceMs
  }

  #wasNamed(entry: Entry | undefined): void {
    if (entry) for (const digest of digestsOf(entry.manifest)) this.#named.set(digest, entry.modifiedAt)
  }

  /** Nothing where that cannot be known: a manifest is damaged, or a folder of them cannot be read. */
  async #namedBlobs(): Promise<ReadonlySet<Digest> | undefined> {
    const named = new Set<Digest>()
    let isKnown = true
    const unreadable = (): void => {
      isKnown = false
    }
    for (const folder of this.#folders) {
      for (const { entry } of await this.#listIn(folder, unreadable)) {
        if (!entry) return undefined
        for (const digest of digestsOf(entry.manifest)) named.add(digest)
      }
    }
    return isKnown ? named : undefined
  }

  /** One change at a time: who prunes sees all names, and who names a blob knows that it stays. */
  async #changing<T>(work: (folder: string, expectMine: () => Promise<void>) => Promise<T>): Promise<T> {
    const [folder] = this.#folders
    if (folder === undefined) throw readOnly()
    try {
      await mkdir(folder, { recursive: true })
      return await withLock(join(folder, '.lock'), new AbortController().signal, (_lost, expectMine) =>
        work(folder, expectMine),
      )
    } catch (error) {
      throw diskError(error)
    }
  }

  async #listIn(
    folder: string,
    unreadable?: () => void,
  ): Promise<readonly { name: ModelName; entry: Entry | undefined }[]> {
    const names = await namesIn(folder, unreadable)
    return Promise.all(names.map(async (name) => ({ name, entry: await this.#read(folder, name) })))
  }

  /** Nothing where there is none, or it is damaged. */
  async #read(folder: string, name: ModelName): Promise<Entry | undefined> {
    const path = pathOf(folder, name)
    const info = await stat(path).catch(() => undefined)
    if (!info?.isFile()) {
      this.#entries.delete(path)
      return undefined
    }
    const stamp = `${info.mtimeMs} ${info.size} ${info.ino}`
    const known = this.#entries.get(path)
    if (known?.stamp === stamp) return known.entry
    const isTooLarge = info.size > maxManifestBytes
    const bytes = isTooLarge ? undefined : await readFile(path).catch(() => undefined)
    // It may be read another time.
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
    this.#entries.delete(path)
    this.#entries.set(path, { stamp, entry })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= maxEntries) break
      this.#entries.delete(oldest)
    }
    return entry
  }
}

/** Where a file has the place of a name, and is no manifest. */
async function damagedAt(folder: string, name: ModelName): Promise<string | undefined> {
  const path = pathOf(folder, await spelledAs(folder, name))
  const info = await stat(path).catch(() => undefined)
  if (!info?.isFile()) return undefined
  return info.size <= maxManifestBytes && parseManifest(await readFile(path)) ? undefined : path
}

async function replace(
  temporary: string,
  path: string,
  bytes: Uint8Array,
  expectMine: () => Promise<void>,
): Promise<void> {
  try {
    const file = await open(temporary, 'wx', 0o644)
    try {
      await file.writeFile(bytes)
      await file.sync()
    } finally {
      await file.close()
    }
    // By the clock that tells the age of blobs.
    const now = new Date()
    await utimes(temporary, now, now)
    await mkdir(dirname(path), { recursive: true })
    await expectMine()
    await rename(temporary, path)
    await syncFolder(dirname(path))
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** What processes that were killed have left beside the names. */
async function leftIn(
  folder: string,
): Promise<readonly { readonly path: string; readonly modifiedAt: Date }[]> {
  const paths = (await readdir(folder))
    .filter((file) => /^\.(?:new|lock)-/.test(file))
    .map((file) => join(folder, file))
  return Promise.all(
    paths.map(async (path) => ({
      path,
      modifiedAt: (await stat(path).catch(() => undefined))?.mtime ?? new Date(),
    })),
  )
}
