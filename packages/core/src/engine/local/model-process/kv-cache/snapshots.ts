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
import { ownNamespace } from '../../ipc/runtime-dir.ts'
import { type Lease, Leases } from './leases.ts'
import { isReadAlike, turnTokens, type Wish } from './slots.ts'

/** What snapshots take at most where nobody says otherwise. */
const mostBytes = 2 ** 30
/** Of the free space. */
const spaceShare = 0.25
/** Less room on the RAM disk than this is not worth it, such as Docker's 64 MB. */
const leastBytes = 64 * 2 ** 20
/** Linux has a RAM disk there. In a container it often is small. */
const ramDisk = '/dev/shm'
export interface State extends Pick<Lease, 'tenant' | 'lifetime'> {
  readonly tokens: readonly Token[]
  /** A prompt that goes on from here comes to the same numbers as one that was read from its start, with the same stops. */
  readonly clean: boolean
  readonly stops: readonly number[]
}

export interface Snapshot extends State, Lease {
  readonly tokens: readonly Token[]
  readonly file: string
  readonly digest: string
}

/**
 * After so many tokens of a prompt its state is worth saving; 0: nowhere. Whole chunks, so that the rest is read in the
 * same chunks warm as cold. Short of the end, so that the same prompt finds it again, and the next turn, too.
 */
export const snapshotLength = (promptLength: number, chunkSize: number): number =>
  Math.max(0, Math.floor((promptLength - turnTokens) / chunkSize) * chunkSize)

export class Snapshots {
  readonly #folder: string
  readonly #budgetBytes: number
  readonly #leases: Leases<Snapshot>
  #saved = 0
  /** States of so many tokens do not fit. */
  #tooLong = Number.POSITIVE_INFINITY

  /**
   * @param folder private, and empty
   * @param now in milliseconds
   */
  constructor(folder: string, budgetBytes: number, now?: () => number) {
    this.#folder = folder
    this.#budgetBytes = Math.floor(budgetBytes)
    this.#leases = new Leases(this.#budgetBytes, ({ file }) => remove(file), now)
  }

  get sizeBytes(): number {
    return this.#leases.sizeBytes
  }

  /** Whether states of so many tokens can be kept, as far as is known. */
  fits(length: number): boolean {
    return this.#budgetBytes > 0 && length < this.#tooLong
  }

  /** The longest that the prompt begins with and can go on from; at least one token comes after it. */
  find(wish: Wish): Snapshot | undefined {
    const { prompt, tenant, repeatable, most = prompt.length - 1 } = wish
    return this.#leases
      .of(tenant, prompt)
      .find(
        ({ tokens: { length }, clean, stops }) =>
          length <= most && (!repeatable || (clean && isReadAlike(stops, wish.stops, length))),
      )
  }

  /** It is used. */
  use(snapshot: Snapshot): void {
    this.#leases.renew(snapshot)
  }

  /** How much of the prompt somebody has asked to be kept, up to the limit, and still is. */
  leased(tenant: string, prompt: readonly Token[], limit: number): number {
    const lease = this.#leases
      .of(tenant, prompt)
      .find(({ tokens, lifetime }) => lifetime && tokens.length <= limit)
    return lease?.tokens.length ?? 0
  }

  /** Whether somebody has asked for just these tokens to be kept, and they are. */
  keeps(tenant: string, tokens: readonly Token[]): boolean {
    return this.#leases.get(tenant, tokens)?.lifetime !== undefined
  }

  /**
   * The time of those up to here begins anew.
   * @param hour up to here it is an hour from now on
   */
  renew(tenant: string, prompt: readonly Token[], limit: number, hour = 0): void {
    for (const lease of this.#leases.of(tenant, prompt)) {
      const { length } = lease.tokens
      if (lease.lifetime && length <= limit) this.#leases.renew(lease, length <= hour ? '1h' : undefined)
    }
  }

  /**
   * Never throws: what cannot be saved is read again.
   * @param write saves the state to the file, and says how many bytes that are
   * @returns whether it is kept
   */
  async save(state: State, write: (file: string) => Promise<number>): Promise<boolean> {
    const { tenant, tokens } = state
    const same = this.#leases.get(tenant, tokens)
    if (same && isAsGood(same, state)) {
      this.#leases.renew(same, state.lifetime)
      return true
    }
    if (!this.fits(tokens.length)) return false
    const unfinished = join(this.#folder, 'unfinished')
    const file = join(this.#folder, String(++this.#saved))
    try {
      makeFolder(this.#folder)
      const written = await write(unfinished)
      const { sizeBytes, digest } = await contentOf(unfinished)
      // The last bytes go out when the file is closed, and the library does not look whether they got there.
      if (sizeBytes !== written) throw new Error('The disk is full.')
      if (sizeBytes > this.#budgetBytes) {
        this.#tooLong = tokens.length
        throw new Error('The state is too large.')
      }
      await rename(unfinished, file)
      const lifetime = same?.lifetime === '1h' ? '1h' : (state.lifetime ?? same?.lifetime)
      if (this.#leases.keep({ ...state, lifetime, file, sizeBytes, digest })) return true
    } catch {
      // Read again, then.
    }
    remove(unfinished)
    remove(file)
    return false
  }

  /**
   * `false`: it is not what was saved, and is dropped. The sequence may hold anything then.
   * @param read loads the state from the file, and says how many tokens it was made from
   */
  async load(snapshot: Snapshot, read: (file: string) => Promise<number>): Promise<boolean> {
    try {
      const { sizeBytes, digest } = await contentOf(snapshot.file)
      const isSame = sizeBytes === snapshot.sizeBytes && digest === snapshot.digest
      if (isSame && (await read(snapshot.file)) === snapshot.tokens.length) {
        this.#leases.renew(snapshot)
        return true
      }
    } catch {
      // Gone, or refused: as good as damaged.
    }
    this.#leases.drop(snapshot)
    return false
  }

  /** Leaves nothing behind. */
  close(): void {
    this.#leases.clear()
    remove(this.#folder)
  }
}

const isAsGood = (one: State, other: State): boolean =>
  (one.lifetime !== undefined || other.lifetime === undefined) &&
  (!other.clean || (one.clean && `${one.stops}` === `${other.stops}`))

/**
 * On the RAM disk where that has room, else in the folder of this process.
 * @param home the folder of this process, which somebody removes when it crashes
 * @param most what they may take, in bytes
 */
export function openSnapshots(home: string, most = mostBytes): Snapshots {
  removeLeftBehind()
  const room = Math.min(spaceIn(ramDisk), process.availableMemory()) * spaceShare
  if (room >= Math.min(most, leastBytes)) {
    try {
      return new Snapshots(
        mkdtempSync(join(ramDisk, `modelmount-${process.pid}-${namespace()}-`)),
        Math.min(most, room),
      )
    } catch {
      // Not for us.
    }
  }
  return new Snapshots(join(home, 'snapshots'), Math.min(most, spaceIn(home) * spaceShare))
}

/** A process that was killed has left its memory full: nobody else knows of that folder. */
function removeLeftBehind(): void {
  for (const name of filesIn(ramDisk)) {
    const [, pid, owner = namespace()] = /^modelmount-(\d+)-(?:(\d+)-)?/.exec(name) ?? []
    // Containers may share the disk, and not their ids.
    if (pid !== undefined && owner === namespace() && !isAlive(Number(pid))) remove(join(ramDisk, name))
  }
}

/** Of process ids, in digits. */
const namespace = (): string => ownNamespace().replace(/\D/g, '') || '0'

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function contentOf(file: string): Promise<Pick<Snapshot, 'sizeBytes' | 'digest'>> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of createReadStream(file, { highWaterMark: 2 ** 20 })) {
    hash.update(piece)
    sizeBytes += piece.length
  }
  return { sizeBytes, digest: hash.digest('hex') }
}

/** Where somebody has cleaned up, it is made again. Throws where it cannot be. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** In bytes. */
function spaceIn(folder: string): number {
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
