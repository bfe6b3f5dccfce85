/**
 * States of sequences, saved to files: up to the breakpoints of prompts, near their ends where a model cannot go back, and
 * of sequences that somebody else needs. The native code ends the process over a damaged file and believes a foreign one,
 * so what each has to be is known here, and checked before it is loaded.
 */
import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Token } from 'node-llama-cpp'
import { getPidNamespace, isAlive } from '../../ipc/runtime-dir.ts'
import { PrefixIndex, type PromptPrefix } from './prefix-index.ts'
import type { SequenceState } from './sequence-state.ts'
import { hasSamePieces, type SlotRequest, volatileTailTokens } from './slots.ts'

/** What snapshots take at most where nobody says otherwise. */
const defaultMaxBytes = 2 ** 30
/** Of the free space. */
const freeSpaceShare = 0.25
/** Less room on the RAM disk than this is not worth it, such as Docker's 64 MB. */
const minBytes = 64 * 2 ** 20
/** Linux has a RAM disk there. In a container it often is small. */
const ramDisk = '/dev/shm'

export interface Snapshot extends SequenceState, PromptPrefix {
  readonly tokens: readonly Token[]
  readonly file: string
  readonly digest: string
}

/**
 * After so many tokens of a prompt its state is worth saving; 0: nowhere. Whole chunks, so that the rest is read in the
 * same chunks warm as cold. Short of the end, so that the same prompt finds it again, and the next turn, too.
 */
export const snapshotLength = (promptLength: number, chunkSize: number): number =>
  Math.max(0, Math.floor((promptLength - volatileTailTokens) / chunkSize) * chunkSize)

export class SnapshotStore {
  readonly #folder: string
  readonly #budgetBytes: number
  readonly #prefixes: PrefixIndex<Snapshot>
  #fileCount = 0
  /** States of so many tokens do not fit. */
  #oversizedLength = Number.POSITIVE_INFINITY

  /**
   * @param folder private, and empty
   * @param now in milliseconds
   */
  constructor(folder: string, budgetBytes: number, now?: () => number) {
    this.#folder = folder
    this.#budgetBytes = Math.floor(budgetBytes)
    this.#prefixes = new PrefixIndex(this.#budgetBytes, ({ file }) => remove(file), now)
  }

  get sizeBytes(): number {
    return this.#prefixes.sizeBytes
  }

  /** Whether states of so many tokens can be kept, as far as is known. */
  canFit(length: number): boolean {
    return this.#budgetBytes > 0 && length < this.#oversizedLength
  }

  /** The longest that the prompt begins with and can go on from; at least one token comes after it. */
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

  /** It is used. */
  touch(snapshot: Snapshot): void {
    this.#prefixes.renew(snapshot)
  }

  /** How much of the prompt somebody has asked to be kept, up to the limit, and still is. */
  cachedPrefixLength(tenant: string, prompt: readonly Token[], limit: number): number {
    const lease = this.#prefixes
      .findPrefixes(tenant, prompt)
      .find(({ tokens, lifetime }) => lifetime && tokens.length <= limit)
    return lease?.tokens.length ?? 0
  }

  /** Whether somebody has asked for just these tokens to be kept, and they are. */
  hasPrefix(tenant: string, tokens: readonly Token[]): boolean {
    return this.#prefixes.get(tenant, tokens)?.lifetime !== undefined
  }

  /**
   * The time of those up to here begins anew.
   * @param hourLength up to here it is an hour from now on
   */
  renew(tenant: string, prompt: readonly Token[], limit: number, hourLength = 0): void {
    for (const lease of this.#prefixes.findPrefixes(tenant, prompt)) {
      const { length } = lease.tokens
      if (lease.lifetime && length <= limit)
        this.#prefixes.renew(lease, length <= hourLength ? '1h' : undefined)
    }
  }

  /**
   * Never throws: what cannot be saved is read again.
   * @param write saves the state to the file, and says how many bytes that are
   * @returns whether it is kept
   */
  async save(state: SequenceState, write: (file: string) => Promise<number>): Promise<boolean> {
    const { tenant, tokens } = state
    const existing = this.#prefixes.get(tenant, tokens)
    if (existing && isAsGoodAs(existing, state)) {
      this.#prefixes.renew(existing, state.lifetime)
      return true
    }
    if (!this.canFit(tokens.length)) return false
    const unfinished = join(this.#folder, 'unfinished')
    const file = join(this.#folder, String(++this.#fileCount))
    try {
      ensureFolder(this.#folder)
      const written = await write(unfinished)
      const { sizeBytes, digest } = await hashFile(unfinished)
      // The last bytes go out when the file is closed, and the library does not look whether they got there.
      if (sizeBytes !== written) throw new Error('The disk is full.')
      if (sizeBytes > this.#budgetBytes) {
        this.#oversizedLength = tokens.length
        throw new Error('The state is too large.')
      }
      await rename(unfinished, file)
      const lifetime = existing?.lifetime === '1h' ? '1h' : (state.lifetime ?? existing?.lifetime)
      if (this.#prefixes.add({ ...state, lifetime, file, sizeBytes, digest })) return true
    } catch {
      // Read again, then.
    }
    remove(unfinished)
    remove(file)
    return false
  }

  /**
   * `false`: it is not what was saved, and is dropped. The sequence may hold anything then.
   * @param restore loads the state from the file, and says how many tokens it was made from
   */
  async load(snapshot: Snapshot, restore: (file: string) => Promise<number>): Promise<boolean> {
    try {
      const { sizeBytes, digest } = await hashFile(snapshot.file)
      const isSame = sizeBytes === snapshot.sizeBytes && digest === snapshot.digest
      if (isSame && (await restore(snapshot.file)) === snapshot.tokens.length) {
        this.#prefixes.renew(snapshot)
        return true
      }
    } catch {
      // Gone, or refused: as good as damaged.
    }
    this.#prefixes.delete(snapshot)
    return false
  }

  /** Leaves nothing behind. */
  close(): void {
    this.#prefixes.clear()
    remove(this.#folder)
  }
}

const isAsGoodAs = (one: SequenceState, other: SequenceState): boolean =>
  (one.lifetime !== undefined || other.lifetime === undefined) &&
  (!other.isDeterministic || (one.isDeterministic && `${one.pieceEnds}` === `${other.pieceEnds}`))

/**
 * On the RAM disk where that has room, else in the folder of this process.
 * @param processFolder the folder of this process, which somebody removes when it crashes
 * @param maxBytes what they may take, in bytes
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
      // Not for us.
    }
  }
  return new SnapshotStore(
    join(processFolder, 'snapshots'),
    Math.min(maxBytes, measureFreeSpace(processFolder) * freeSpaceShare),
  )
}

/** A process that was killed has left its memory full: nobody else knows of that folder. */
function removeOrphans(): void {
  for (const name of listFiles(ramDisk)) {
    const [, pid, owner = pidNamespaceDigits()] = /^modelmount-(\d+)-(?:(\d+)-)?/.exec(name) ?? []
    // Containers may share the disk, and not their ids.
    if (
      pid !== undefined &&
      owner === pidNamespaceDigits() &&
      !isAlive({ processId: Number(pid), namespace: getPidNamespace() })
    )
      remove(join(ramDisk, name))
  }
}

/** Of process ids, in digits. */
const pidNamespaceDigits = (): string => getPidNamespace().replace(/\D/g, '') || '0'

async function hashFile(file: string): Promise<Pick<Snapshot, 'sizeBytes' | 'digest'>> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of createReadStream(file, { highWaterMark: 2 ** 20 })) {
    hash.update(piece)
    sizeBytes += piece.length
  }
  return { sizeBytes, digest: hash.digest('hex') }
}

/** Where somebody has cleaned up, it is made again. Throws where it cannot be. */
function ensureFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function listFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** In bytes. */
function measureFreeSpace(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return 0
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // It is somebody else's, or goes with its folder.
  }
}
