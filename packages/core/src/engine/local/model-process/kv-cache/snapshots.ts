/**
 * KV states in files, within one size limit: snapshots, which later prompts reuse, and the states of suspended
 * sequences, which precede them.
 */
import { mkdtempSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { Token } from 'node-llama-cpp'
import { getPidNamespace, isAlive } from '../../ipc/runtime-dir.ts'
import { PrefixIndex, type PromptPrefix } from './prefix-index.ts'
import type { SequenceState } from './sequence-state.ts'
import { hasSamePieces, type SlotRequest, volatileTailTokens } from './slots.ts'
import { removePath, type StateFile, StateFiles } from './state-files.ts'

/** Default limit on the total size of all states, in bytes. */
const defaultMaxBytes = 2 ** 30
/** Share of the free space that states may use. */
const freeSpaceShare = 0.25
/**
 * Minimum space for states on the RAM disk, in bytes. A quarter of Docker's default RAM disk (64 MB) is
 * less.
 */
const minBytes = 64 * 2 ** 20
/** Linux's RAM disk, which is often small in containers. */
const ramDisk = '/dev/shm'

export interface Snapshot extends SequenceState, PromptPrefix, StateFile {
  readonly tokens: readonly Token[]
}

/**
 * Length in tokens of the part of a prompt that is saved as a snapshot, or 0 for none. This part consists of
 * whole chunks, so that the rest is evaluated in the same chunks as without a snapshot. It ends before the
 * end of the prompt, so that both the same prompt and the next turn can use the snapshot.
 */
export const snapshotLength = (promptLength: number, chunkSize: number): number =>
  Math.max(0, Math.floor((promptLength - volatileTailTokens) / chunkSize) * chunkSize)

export class SnapshotStore {
  readonly #files: StateFiles
  readonly #budgetBytes: number
  readonly #prefixes: PrefixIndex<Snapshot>
  /** Files of suspended sequences. */
  readonly #suspended = new Set<string>()
  /** Length in tokens of the shortest state that exceeded the budget. */
  #oversizedLength = Number.POSITIVE_INFINITY

  /**
   * @param folder private folder for the files, empty or not created yet
   * @param now clock in ms
   */
  constructor(folder: string, budgetBytes: number, now?: () => number) {
    this.#files = new StateFiles(folder)
    this.#budgetBytes = Math.floor(budgetBytes)
    this.#prefixes = new PrefixIndex(this.#budgetBytes, (snapshot) => this.#files.remove(snapshot), now)
  }

  /** Total size of the snapshots, without suspended states. */
  get sizeBytes(): number {
    return this.#prefixes.sizeBytes
  }

  /** Whether a state of this many tokens may fit: no state of this length or shorter was too large so far. */
  canFit(length: number): boolean {
    return this.#budgetBytes > 0 && length < this.#oversizedLength
  }

  /** Finds the longest snapshot that the prompt can continue. At least one prompt token comes after it. */
  findLongest(request: SlotRequest): Snapshot | undefined {
    const { prompt, tenant, isDeterministic: mustBeDeterministic, maxReuse = prompt.length - 1 } = request
    return this.#prefixes
      .findPrefixes(tenant, prompt)
      .find(
        ({ tokens: { length }, isDeterministic, pieceEnds }) =>
          length <= maxReuse &&
          (!mustBeDeterministic || (isDeterministic && hasSamePieces(pieceEnds, request.pieceEnds, length))),
      )
  }

  /** Restarts the lifetime of a snapshot in use. */
  touch(snapshot: Snapshot): void {
    this.#prefixes.renew(snapshot)
  }

  /** Length of the longest prefix of at most `limit` tokens that is cached for a breakpoint. */
  cachedPrefixLength(tenant: string, prompt: readonly Token[], limit: number): number {
    const lease = this.#prefixes
      .findPrefixes(tenant, prompt)
      .find(({ tokens, lifetime }) => lifetime && tokens.length <= limit)
    return lease?.tokens.length ?? 0
  }

  /** Whether exactly these tokens are cached for a breakpoint. */
  hasPrefix(tenant: string, tokens: readonly Token[]): boolean {
    return this.#prefixes.get(tenant, tokens)?.lifetime !== undefined
  }

  /**
   * Restarts the lifetimes of all prefixes of at most `limit` tokens that are cached for a breakpoint.
   * @param hourLength prefixes of at most this many tokens get a lifetime of an hour
   */
  renew(tenant: string, prompt: readonly Token[], limit: number, hourLength = 0): void {
    for (const lease of this.#prefixes.findPrefixes(tenant, prompt)) {
      const { length } = lease.tokens
      if (lease.lifetime && length <= limit)
        this.#prefixes.renew(lease, length <= hourLength ? '1h' : undefined)
    }
  }

  /**
   * Saves a state. Never throws, since a state that cannot be saved can be evaluated again.
   * @param write saves the state to the file and returns its size in bytes
   * @returns whether the state is cached
   */
  async save(state: SequenceState, write: (file: string) => Promise<number>): Promise<boolean> {
    const { tenant, tokens } = state
    const existing = this.#prefixes.get(tenant, tokens)
    if (existing && isAsGoodAs(existing, state)) {
      this.#prefixes.renew(existing, state.lifetime)
      return true
    }
    const written = await this.#write(tokens.length, write)
    if (!written) return false
    const lifetime = existing?.lifetime === '1h' ? '1h' : (state.lifetime ?? existing?.lifetime)
    if (this.#prefixes.add({ ...state, lifetime, ...written })) return true
    this.#files.remove(written)
    return false
  }

  /**
   * Loads a snapshot. Returns `false` if the file has changed or cannot be loaded. In this case, the snapshot
   * is dropped, and the state of the sequence is unknown.
   * @param restore loads the state from the file and returns its number of tokens
   */
  async load(snapshot: Snapshot, restore: (file: string) => Promise<number>): Promise<boolean> {
    const isLoaded = await this.#files.load(snapshot, snapshot.tokens.length, restore)
    if (isLoaded) this.#prefixes.renew(snapshot)
    else this.#prefixes.delete(snapshot)
    return isLoaded
  }

  /**
   * Saves the state of a sequence that gives up its slot. Evicts snapshots if there is no room. Returns
   * `undefined` if the state cannot be saved.
   * @param length number of tokens of the state
   */
  async suspend(length: number, write: (file: string) => Promise<number>): Promise<StateFile | undefined> {
    const written = await this.#write(length, write)
    if (!written) return undefined
    if (!this.#prefixes.reserve(written.sizeBytes)) {
      this.#files.remove(written)
      return undefined
    }
    this.#suspended.add(written.file)
    return written
  }

  /** Loads the state of a suspended sequence and removes the file. Returns `false` like `load`. */
  async resume(
    state: StateFile,
    length: number,
    restore: (file: string) => Promise<number>,
  ): Promise<boolean> {
    const isLoaded = await this.#files.load(state, length, restore)
    this.discard(state)
    return isLoaded
  }

  /** Removes the state of a suspended sequence. Does nothing if it is removed already. */
  discard(state: StateFile): void {
    if (!this.#suspended.delete(state.file)) return
    this.#prefixes.release(state.sizeBytes)
    this.#files.remove(state)
  }

  /** Removes all files. */
  close(): void {
    this.#prefixes.clear()
    this.#files.removeAll()
  }

  /** Never rejects. Returns `undefined` if the state is too large or cannot be written. */
  async #write(length: number, write: (file: string) => Promise<number>): Promise<StateFile | undefined> {
    if (!this.canFit(length)) return undefined
    const written = await this.#files.write(write).catch(() => undefined)
    if (!written || written.sizeBytes <= this.#budgetBytes) return written
    this.#oversizedLength = length
    this.#files.remove(written)
    return undefined
  }
}

const isAsGoodAs = (one: SequenceState, other: SequenceState): boolean =>
  (one.lifetime !== undefined || other.lifetime === undefined) &&
  (!other.isDeterministic || (one.isDeterministic && `${one.pieceEnds}` === `${other.pieceEnds}`))

/**
 * Opens a store on the RAM disk if that has enough room, else in the folder of this process.
 * @param processFolder private folder of this process, which the app removes after a crash
 * @param maxBytes limit on the total size of all states
 */
export function openSnapshotStore(processFolder: string, maxBytes = defaultMaxBytes): SnapshotStore {
  removeOrphans()
  const ramDiskBytes = Math.min(measureFreeSpace(ramDisk), process.availableMemory()) * freeSpaceShare
  if (ramDiskBytes >= Math.min(maxBytes, minBytes)) {
    try {
      return new SnapshotStore(
        mkdtempSync(join(ramDisk, `modelmount-${process.pid}-${pidNamespaceDigits()}-`)),
        Math.min(maxBytes, ramDiskBytes),
      )
    } catch {
      // The RAM disk is not writable.
    }
  }
  return new SnapshotStore(
    join(processFolder, 'snapshots'),
    Math.min(maxBytes, measureFreeSpace(processFolder) * freeSpaceShare),
  )
}

/** Removes folders that killed processes have left on the RAM disk. */
function removeOrphans(): void {
  for (const name of listFiles(ramDisk)) {
    const [, pid, owner = pidNamespaceDigits()] = /^modelmount-(\d+)-(?:(\d+)-)?/.exec(name) ?? []
    // Containers may share the RAM disk, but each container has its own process ids.
    if (
      pid !== undefined &&
      owner === pidNamespaceDigits() &&
      !isAlive({ processId: Number(pid), namespace: getPidNamespace() })
    )
      removePath(join(ramDisk, name))
  }
}

/** PID namespace of this process, reduced to its digits for folder names. */
const pidNamespaceDigits = (): string => getPidNamespace().replace(/\D/g, '') || '0'

function listFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Free space of a disk, in bytes. */
function measureFreeSpace(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return 0
  }
}
