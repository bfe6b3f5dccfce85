/**
 * State of an unfinished download on disk. The format follows Ollama's `server/download.go`, so that Ollama
 * and Modelmount can resume each other's downloads.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { statOf } from './disk.ts'

/** A byte range of a transfer, and the number of completed bytes in it. */
export interface TransferPart {
  readonly number: number
  readonly offset: number
  readonly size: number
  completed: number
}

const minPartBytes = 100e6
const maxPartBytes = 1_000e6

/** With many parts, a large download stays nearly contiguous and can be hashed while it runs. */
const targetPartCount = 64

export function planParts(sizeBytes: number, partBytes?: number): readonly TransferPart[] {
  const defaultPartBytes = Math.min(
    Math.max(Math.ceil(sizeBytes / targetPartCount), minPartBytes),
    maxPartBytes,
  )
  const step = partBytes || defaultPartBytes
  return Array.from({ length: Math.ceil(sizeBytes / step) }, (_, number) => ({
    number,
    offset: number * step,
    size: Math.min(step, sizeBytes - number * step),
    completed: 0,
  }))
}

/** Length of a state file. Four numbers of up to 16 digits fit in it, with their keys. */
const stateLength = 120

/** The partial file at `path`, and a state file per part beside it. */
export class PartFiles {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Returns the saved parts. Returns `undefined` if they are missing or do not cover the file. */
  async read(sizeBytes: number): Promise<readonly TransferPart[] | undefined> {
    if ((await statOf(this.path))?.size !== sizeBytes) return undefined
    const texts = await Promise.all(
      (await this.#listStates()).map((state) => readFile(state, 'utf8').catch(() => '')),
    )
    const parts = texts.map(parsePart)
    return parts.every((part) => part !== undefined) ? sortContiguous(parts, sizeBytes) : undefined
  }

  /** Replaces all state files. */
  async reset(parts: readonly TransferPart[]): Promise<readonly TransferPart[]> {
    await this.#removeAll()
    for (const part of parts) await writeFile(this.#statePath(part), formatPart(part))
    return parts
  }

  /**
   * Overwrites the state with one write of constant length. A killed process leaves the old state or the new
   * state.
   */
  save(part: TransferPart): Promise<void> {
    return writeFile(this.#statePath(part), formatPart(part), { flag: 'r+' })
  }

  /**
   * Removes the state files if the partial file is gone, because it was renamed to a blob or discarded.
   */
  async removeStates(): Promise<void> {
    if (!(await statOf(this.path))) await this.#removeAll()
  }

  #statePath({ number }: TransferPart): string {
    return `${this.path}-${number}`
  }

  async #removeAll(): Promise<void> {
    await Promise.all((await this.#listStates()).map((state) => rm(state, { force: true })))
  }

  async #listStates(): Promise<readonly string[]> {
    const folder = dirname(this.path)
    const prefix = `${basename(this.path)}-`
    const names = await readdir(folder)
    return names
      .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
      .map((name) => join(folder, name))
  }
}

function formatPart({ number, offset, size, completed }: TransferPart): string {
  return JSON.stringify({ N: number, Offset: offset, Size: size, Completed: completed }).padEnd(stateLength)
}

function parsePart(text: string): TransferPart | undefined {
  try {
    const { N: number, Offset: offset, Size: size, Completed: completed } = JSON.parse(text)
    const numbers = [number, offset, size, completed]
    if (numbers.every((one) => Number.isSafeInteger(one) && one >= 0) && completed <= size)
      return { number, offset, size, completed }
  } catch {}
  return undefined
}

/** Sorts the parts by offset. Returns `undefined` unless they cover the file without gaps. */
function sortContiguous(
  parts: readonly TransferPart[],
  sizeBytes: number,
): readonly TransferPart[] | undefined {
  const sorted = parts.toSorted((a, b) => a.offset - b.offset)
  let end = 0
  for (const part of sorted) {
    if (part.offset !== end) return undefined
    end += part.size
  }
  return end === sizeBytes ? sorted : undefined
}
