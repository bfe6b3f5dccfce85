/** Writes a copy of an SQLite database, also while apps use it. */
import { randomUUID } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { reasonOf } from '../storage/database.ts'
import { type DatabaseLocation, isPostgres, openDatabase } from '../storage/open.ts'
import { renameOver } from '../util/files/rename-over.ts'
import { expectExisting } from './expect-existing.ts'

/** Options of `backupDatabase()`. */
export interface BackupOptions {
  /** Whether to replace an existing file. @default false */
  readonly overwrite?: boolean | undefined
}

/**
 * Writes a copy of a database to a file that only its owner can read (mode 0600). Apps can use the database
 * meanwhile: the copy contains all transactions that were committed when it began, and no later ones. The
 * tables are copied as they are, so also a database of an older or newer version can be backed up.
 *
 * The file appears when it is complete. A process that is killed before leaves a file that ends in `.partial`.
 * Rejects with an `Error` if the file exists and `overwrite` is not set, if the database does not exist, or if
 * it is PostgreSQL, which has a tool of its own.
 *
 * @param location the option `database` of `createLlm()`
 */
export async function backupDatabase(
  location: DatabaseLocation,
  file: string,
  { overwrite = false }: BackupOptions = {},
): Promise<void> {
  if (isPostgres(location)) throw new Error(usePgDump)
  expectExisting(location)
  expectUnused(location, file)
  if (!overwrite && existsSync(file)) throw fileExists(file)
  const partial = `${file}.${randomUUID()}.partial`
  // SQLite writes into an empty file, and keeps its mode.
  await (await open(partial, 'wx', 0o600)).close()
  try {
    await copy(location, partial)
    // Windows flushes only files that are open for writing.
    await sync(partial, 'r+')
    await (overwrite ? renameOver(partial, file) : renameToNew(partial, file))
    await sync(dirname(resolve(file)), 'r').catch(() => {}) // Not every platform can open a folder.
  } finally {
    await rm(partial, { force: true })
  }
}

const usePgDump =
  'Only SQLite databases can be backed up in this way. Back up PostgreSQL with its own tool: ' +
  "pg_dump --format=custom --table='modelmount_*' --file=modelmount.dump DATABASE_URL"

/** Copies in one read transaction. In WAL mode, it delays no writer. */
async function copy(location: string, file: string): Promise<void> {
  const database = await openDatabase(location)
  try {
    await database.query('VACUUM INTO ?', [file])
  } catch (error) {
    throw reasonOf(error)
  } finally {
    await database.close()
  }
}

/**
 * Throws if the file belongs to a database in use. SQLite would apply the `-wal` file of the replaced database
 * to its replacement, and damage it.
 */
function expectUnused(location: string, file: string): void {
  const [source, target] = [canonicalPath(location), canonicalPath(file)]
  if ([source, ...companionsOf(source)].includes(target))
    throw new Error(`${file} belongs to the database that is backed up. Name another file.`)
  const companion = companionsOf(target).find((path) => existsSync(path))
  if (companion !== undefined)
    throw new Error(
      `${file} is a database in use, because ${companion} exists. Name another file, or stop its apps.`,
    )
}

const companionsOf = (path: string): readonly string[] =>
  ['-wal', '-shm', '-journal'].map((suffix) => path + suffix)

/** The path without symbolic links. The file itself may be missing. */
function canonicalPath(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  const folder = dirname(resolve(path))
  return join(existsSync(folder) ? realpathSync(folder) : folder, basename(path))
}

/** Renames a file, unless the new name exists. `rename` alone would replace a file that was created meanwhile. */
async function renameToNew(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || existsSync(to)) throw fileExists(to)
    // Some file systems have no hard links.
    await rename(from, to)
  }
}

const fileExists = (file: string): Error =>
  new Error(`${file} exists. Name another file, or allow it to be replaced: \`overwrite\`.`)

async function sync(path: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(path, flags)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
