/**
 * The file in which processes keep the snapshots that they have seen, and the digests of standalone files. Where no
 * folder can be written, they are kept in memory.
 */
import { randomUUID } from 'node:crypto'
import { access, constants, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { withFileLock } from '../../util/files/file-lock.ts'
import { renameOver } from '../../util/files/rename-over.ts'
import { statOf } from '../ollama-store/disk.ts'

const fileName = 'modelmount-snapshots.json'
/** A larger file is none of ours. */
const maxFileBytes = 64 * 1024 * 1024
/** How long a change waits for other processes, in ms. A list of models must not wait longer. */
const lockTimeoutMs = 1_000

const Hex = z.string().regex(/^[0-9a-f]{64}$/)
const Record = z.object({
  /** Such as `tiny-20261122`. */
  id: z.string(),
  /** Name of the model with its tag. */
  name: z.string(),
  /** Digest of the manifest, or of the contents of a standalone file. */
  digest: Hex,
  /** When this digest was first seen. */
  createdAt: z.iso.datetime(),
  /** The manifest, so that this version is found after the model is replaced. Absent for a standalone file. */
  manifest: z.string().optional(),
})
const State = z.object({
  snapshots: z.array(Record),
  /** Digests of the contents of standalone files, by the digests of their path, size and date. */
  contents: z.record(z.string(), Hex),
})

export type SnapshotRecord = z.output<typeof Record>
export type SnapshotState = z.output<typeof State>

/** @param isStored whether the next state is kept across restarts */
type StateChange = (state: SnapshotState, isStored: boolean) => SnapshotState

export class SnapshotFile {
  readonly #folders: readonly string[]
  #cached: { readonly stamp: string; readonly state: SnapshotState } | undefined
  /** The state of a process that cannot write. */
  #unwritten: SnapshotState | undefined

  /** @param folders the first that can be written gets the file */
  constructor(folders: readonly string[]) {
    this.#folders = folders
  }

  async read(): Promise<SnapshotState> {
    const stats = await Promise.all(this.#folders.map((folder) => statOf(join(folder, fileName))))
    const stamp = stats.map((info) => `${info?.mtimeMs} ${info?.size} ${info?.ino}`).join()
    if (this.#cached?.stamp !== stamp) {
      const states = await Promise.all(this.#folders.map((folder) => readState(join(folder, fileName))))
      this.#cached = { stamp, state: states.reduce(mergeStates, emptyState) }
    }
    const { state } = this.#cached
    return this.#unwritten ? mergeStates(state, this.#unwritten) : state
  }

  /** Changes the state, across processes. If another process holds the lock for too long, nothing changes. */
  async change(change: StateChange): Promise<SnapshotState> {
    for (const folder of this.#folders) {
      const written = await this.#write(folder, change)
      if (written) return written
    }
    this.#unwritten = change(await this.read(), false)
    return this.read()
  }

  /** Returns `undefined` if the folder cannot be written. */
  async #write(folder: string, change: StateChange): Promise<SnapshotState | undefined> {
    const path = join(folder, fileName)
    const timeout = AbortSignal.timeout(lockTimeoutMs)
    try {
      return await withFileLock(`${path}.lock`, timeout, async (_lost, expectOwned) => {
        // Otherwise, an unreadable file would count as empty, and be replaced.
        if (await statOf(path)) await access(path, constants.R_OK)
        const state = change(await this.read(), true)
        await replaceFile(path, JSON.stringify(state), expectOwned)
        this.#cached = undefined
        return state
      })
    } catch {
      return timeout.aborted ? this.read() : undefined
    }
  }
}

const emptyState: SnapshotState = { snapshots: [], contents: {} }

const mergeStates = (a: SnapshotState, b: SnapshotState): SnapshotState => {
  const ids = new Set(a.snapshots.map(({ id }) => id))
  return {
    snapshots: [...a.snapshots, ...b.snapshots.filter(({ id }) => !ids.has(id))],
    contents: { ...b.contents, ...a.contents },
  }
}

/** Treats a missing or damaged file as empty. */
async function readState(path: string): Promise<SnapshotState> {
  try {
    const bytes = await readFile(path)
    if (bytes.length > maxFileBytes) return emptyState
    return State.parse(JSON.parse(bytes.toString()))
  } catch {
    return emptyState
  }
}

async function replaceFile(path: string, text: string, expectOwned: () => Promise<void>): Promise<void> {
  const temporary = `${path}.${randomUUID()}`
  try {
    await writeFile(temporary, text, { flag: 'wx' })
    await expectOwned()
    await renameOver(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
