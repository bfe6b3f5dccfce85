/** The three files of an SQLite database: the database, `-wal` and `-shm`. */
import { closeSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FileChange } from './failures.ts'

/** Device and inode of each file. Undefined for a file that is missing or cannot be read. */
export interface FileIds {
  readonly database: string | undefined
  readonly wal: string | undefined
  readonly shm: string | undefined
}

export function identifyFiles(path: string): FileIds {
  const file = resolveLinks(path)
  return { database: identify(file), wal: identify(`${file}-wal`), shm: identify(`${file}-shm`) }
}

/** The path without symbolic links. SQLite names the `-wal` and `-shm` files after it. */
export function resolveLinks(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

function identify(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

/**
 * How the files differ from those that are open. SQLite itself does not notice: it would go on writing to
 * files that no other process can open. It keeps the `-wal` and `-shm` files as long as a connection is open.
 */
export function findChange(opened: FileIds, now: FileIds): FileChange | undefined {
  if (now.database === undefined) return 'missing'
  if (now.database !== opened.database) return 'replaced'
  return now.wal === opened.wal && now.shm === opened.shm ? undefined : 'detached'
}

/**
 * Creates a file that only its owner can read. SQLite creates its `-wal` and `-shm` files with the same mode.
 * Does not open an existing file: closing it would release the locks of other connections in this process.
 */
export function createPrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
  }
}
