/**
 * The lines that users type in conversations, in the file of the `ollama` CLI: one entry a line, the oldest first.
 * A conversation goes on when the file cannot be read or written.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** As many as the `ollama` CLI keeps. */
export const maxEntries = 100
/** Longest entry that is stored, in UTF-16 code units. It bounds the file to about a megabyte. */
const maxLength = 10_000

export class History {
  readonly #file: string

  /** @param file @default `~/.ollama/history` */
  constructor(file = join(homedir(), '.ollama', 'history')) {
    this.#file = file
  }

  /** The stored entries, the oldest first. */
  get entries(): readonly string[] {
    try {
      return readFileSync(this.#file, 'utf8').split('\n').filter(Boolean).slice(-maxEntries)
    } catch {
      return []
    }
  }

  /** Adds an entry, and keeps those that other conversations have added meanwhile. */
  add(entry: string): void {
    const before = this.entries
    if (entry === '' || entry.length > maxLength || entry === before.at(-1)) return
    const temporary = `${this.#file}.${process.pid}.tmp`
    try {
      mkdirSync(dirname(this.#file), { recursive: true })
      const lines = [...before, entry].slice(-maxEntries).map((line) => `${line}\n`)
      // The new file is private, whatever the mode of the earlier one was.
      writeFileSync(temporary, lines.join(''), { mode: 0o600 })
      renameSync(temporary, this.#file)
    } catch {
      rmSync(temporary, { force: true })
    }
  }
}
