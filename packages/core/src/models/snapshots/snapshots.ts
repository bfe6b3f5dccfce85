/** Dated ids of the versions of models, such as `tiny-20261122`. A version gets its id when it is first seen. */

import { LlmError } from '../../errors.ts'
import { withTimeout } from '../../util/with-timeout.ts'
import type { Model } from '../model.ts'
import { matchKeyOf } from '../name-pattern.ts'
import { ContentDigests, type HashedModel } from './content-digests.ts'
import { SnapshotFile, type SnapshotRecord, type SnapshotState } from './snapshot-file.ts'

/** Older snapshots are forgotten, except for those of models that exist. */
const maxSnapshots = 1_000
/** A longer manifest is not kept, so a model with one cannot be found after it is replaced. */
const maxManifestBytes = 16 * 1024
/** How long a call waits for the digest of a file, in ms. */
const hashTimeoutMs = 10_000

/** A version of a model that exists. */
export interface SeenVersion extends Pick<Model, 'name' | 'modifiedAt'> {
  /** Digest of the manifest, or of the contents of a standalone file. */
  readonly digest: string
  /** Absent for a standalone file. */
  readonly manifest?: Buffer
}

export class Snapshots {
  readonly #file: SnapshotFile
  readonly #contents = new ContentDigests()

  /** @param folders the first that can be written gets the file of snapshots */
  constructor(folders: readonly string[]) {
    this.#file = new SnapshotFile(folders)
  }

  /** Finds a snapshot by its id. */
  async find(id: string): Promise<SnapshotRecord | undefined> {
    // Most names cannot be ids, and need no look at the file.
    if (!/-\d{8}(?:-\d+)?(?::latest)?$/i.test(id)) return undefined
    const key = matchKeyOf(id)
    return (await this.#file.read()).snapshots.find((one) => matchKeyOf(one.id) === key)
  }

  /** Finds the snapshot of one version of a model. */
  async findVersion(name: string, digest: string): Promise<SnapshotRecord | undefined> {
    return findVersion(await this.#file.read(), { name, digest })
  }

  /** Returns all known snapshots, with those of new versions. */
  async see(versions: readonly SeenVersion[]): Promise<readonly SnapshotRecord[]> {
    const state = await this.#file.read()
    if (versions.every((version) => findVersion(state, version))) return state.snapshots
    const next = await this.#file.change((state, isStored) => addVersions(state, versions, isStored))
    return next.snapshots
  }

  /** Digest of the contents of a standalone file. Until it is known, hashes the file in the background. */
  async digestOf(model: HashedModel): Promise<string | undefined> {
    const known = (await this.#file.read()).contents[model.digest]
    if (known === undefined) this.#hash(model).catch(() => {})
    return known
  }

  /** Waits for the digest. Throws an `LlmError` `unavailable` if it takes too long. */
  async waitForDigest(model: HashedModel): Promise<string> {
    const digest =
      (await this.#file.read()).contents[model.digest] ??
      (await withTimeout(this.#hash(model), hashTimeoutMs))
    if (digest !== undefined) return digest
    throw new LlmError('unavailable', 'The digest of the model is being computed.', { retryAfterMs: 5_000 })
  }

  /** Ends the hashing of files. */
  close(): Promise<void> {
    return this.#contents.close()
  }

  async #hash(model: HashedModel): Promise<string> {
    const digest = await this.#contents.hash(model)
    const state = await this.#file.read()
    if (state.contents[model.digest] === undefined)
      await this.#file.change((state) => ({
        ...state,
        contents: { ...keepNewest(state.contents), [model.digest]: digest },
      }))
    return digest
  }
}

const findVersion = (
  { snapshots }: SnapshotState,
  { name, digest }: Pick<SeenVersion, 'name' | 'digest'>,
): SnapshotRecord | undefined => {
  const key = matchKeyOf(name)
  return snapshots.find((one) => one.digest === digest && matchKeyOf(one.name) === key)
}

function addVersions(
  state: SnapshotState,
  versions: readonly SeenVersion[],
  isStored: boolean,
): SnapshotState {
  const snapshots = [...state.snapshots]
  for (const version of versions) {
    if (findVersion({ ...state, snapshots }, version)) continue
    // A date that is not kept would change with each restart. The date of the file stays.
    snapshots.push(toRecord(version, isStored ? new Date() : version.modifiedAt, snapshots))
  }
  const isPresent = (one: SnapshotRecord): boolean =>
    versions.some(({ name, digest }) => digest === one.digest && name === one.name)
  const surplus = snapshots.length - maxSnapshots
  const kept = surplus <= 0 ? snapshots : snapshots.filter((one, index) => index >= surplus || isPresent(one))
  return { ...state, snapshots: kept }
}

function toRecord(
  { name, digest, manifest }: SeenVersion,
  createdAt: Date,
  others: readonly SnapshotRecord[],
): SnapshotRecord {
  const keys = new Set(others.map(({ id }) => matchKeyOf(id)))
  const day = createdAt.toISOString().slice(0, 10).replaceAll('-', '')
  const dated = `${name.replace(/:latest$/, '')}-${day}`
  let id = dated
  for (let count = 2; keys.has(matchKeyOf(id)); count++) id = `${dated}-${count}`
  return {
    ...{ id, name, digest, createdAt: createdAt.toISOString() },
    ...(manifest && manifest.length <= maxManifestBytes && { manifest: manifest.toString() }),
  }
}

/** Files that change often leave digests behind. */
const keepNewest = (contents: SnapshotState['contents']): SnapshotState['contents'] =>
  Object.fromEntries(Object.entries(contents).slice(1 - maxSnapshots))
