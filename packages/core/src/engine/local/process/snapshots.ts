/**
 * States of sequences, saved to files: for models whose memory cannot be cut back to what two prompts have in common.
 * The native code ends the process over a damaged file and believes a foreign one, so each is checked before it is loaded.
 */
import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Token } from 'node-llama-cpp'
import type { Wish } from './slots.ts'

/** What snapshots take at most; a quarter of the free space where that is less. */
const mostBytes = 256 * 2 ** 20
const spaceShare = 0.25
/** Linux has a RAM disk there. In a container it often is small. */
const ramDisk = '/dev/shm'
/** So much of a prompt's end belongs to this answer alone: a template's `<think>`, say, which history leaves out. */
const turnTokens = 8

export interface State {
  readonly tenant: string
  readonly tokens: readonly Token[]
  /** A prompt that goes on from here comes to the same numbers as one that was read from its start. */
  readonly clean: boolean
}

export interface Snapshot extends State {
  readonly file: string
  readonly sizeBytes: number
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
  /** The one that was used last comes last. */
  #all: Snapshot[] = []
  #saved = 0
  /** States of so many tokens do not fit. */
  #tooLong = Number.POSITIVE_INFINITY

  /** @param folder private, and empty */
  constructor(folder: string, budgetBytes: number) {
    this.#folder = folder
    this.#budgetBytes = budgetBytes
  }

  get sizeBytes(): number {
    return this.#all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  }

  /** The longest that the prompt begins with; at least one token comes after it. */
  find({ prompt, tenant, repeatable }: Wish): Snapshot | undefined {
    const [longest] = this.#all
      .filter((one) => one.tenant === tenant && (one.clean || !repeatable))
      .filter(({ tokens }) => tokens.length < prompt.length && isStart(tokens, prompt))
      .sort((a, b) => b.tokens.length - a.tokens.length)
    return longest
  }

  /**
   * Never throws: what cannot be saved is read again.
   * @param write saves the state to the file, and says how many bytes that are
   */
  async save(state: State, write: (file: string) => Promise<number>): Promise<void> {
    const { tenant, tokens, clean } = state
    const same = this.#all.find(
      (one) => one.tenant === tenant && one.tokens.length === tokens.length && isStart(one.tokens, tokens),
    )
    if (same && (same.clean || !clean)) return this.#touch(same)
    if (tokens.length >= this.#tooLong) return
    const unfinished = join(this.#folder, 'unfinished')
    try {
      const written = await write(unfinished)
      const { sizeBytes, digest } = await contentOf(unfinished)
      // The last bytes go out when the file is closed, and the library does not look whether they got there.
      if (sizeBytes !== written) throw new Error('The disk is full.')
      if (sizeBytes > this.#budgetBytes) {
        this.#tooLong = tokens.length
        throw new Error('The state is too large.')
      }
      if (same) this.#drop(same)
      while (this.sizeBytes + sizeBytes > this.#budgetBytes) this.#drop(this.#all[0] as Snapshot)
      const file = join(this.#folder, String(++this.#saved))
      await rename(unfinished, file)
      this.#all.push({ ...state, file, sizeBytes, digest })
    } catch {
      remove(unfinished)
    }
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
        this.#touch(snapshot)
        return true
      }
    } catch {
      // Gone, or refused: as good as damaged.
    }
    this.#drop(snapshot)
    return false
  }

  /** Leaves nothing behind. */
  close(): void {
    this.#all = []
    remove(this.#folder)
  }

  #touch(snapshot: Snapshot): void {
    this.#all = [...this.#all.filter((one) => one !== snapshot), snapshot]
  }

  #drop(snapshot: Snapshot): void {
    this.#all = this.#all.filter((one) => one !== snapshot)
    remove(snapshot.file)
  }
}

/**
 * On the RAM disk where that has room, else in the folder of this process.
 * @param home the folder of this process, which somebody removes when it crashes
 */
export function openSnapshots(home: string): Snapshots {
  removeLeftBehind()
  if (Math.min(spaceIn(ramDisk), process.availableMemory()) * spaceShare >= mostBytes) {
    try {
      return new Snapshots(mkdtempSync(join(ramDisk, `modelmount-${process.pid}-`)), mostBytes)
    } catch {
      // Not for us.
    }
  }
  const folder = join(home, 'snapshots')
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch {
    // Then nothing can be saved, and all is read again.
  }
  return new Snapshots(folder, Math.min(mostBytes, spaceIn(home) * spaceShare))
}

/** A process that was killed has left its memory full: nobody else knows of that folder. */
function removeLeftBehind(): void {
  for (const name of filesIn(ramDisk)) {
    const [, pid] = /^modelmount-(\d+)-/.exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) remove(join(ramDisk, name))
  }
}

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

/** From the back: prompts of one app begin alike. */
function isStart(tokens: readonly Token[], prompt: readonly Token[]): boolean {
  let index = tokens.length
  while (index > 0 && tokens[index - 1] === prompt[index - 1]) index--
  return index === 0
}
