/**
 * The runtime folder, in which the apps of one user find running model processes. It contains the socket
 * and the record of each process.
 */
import { createHash, randomBytes } from 'node:crypto'
import {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join, win32 } from 'node:path'
import { renameOverSync } from '../../../util/files/rename-over.ts'
import { isListening } from './framing.ts'
import { ProcessRecord } from './process-config.ts'

/**
 * Maximum length of the folder path, with room for the file name of a socket. A Unix socket path of more than
 * about 100 bytes is silently cut, so the socket would be created elsewhere.
 */
const maxPathBytes = 75

/** How long a process may take from its first record to its socket. Usually this takes a millisecond. */
const startTimeoutMs = 5_000

/** Why apps cannot share a folder. `unwritable` includes a folder that cannot be created. */
export type RuntimeDirProblem = 'too-long' | 'unwritable' | 'not-private'

/** The folder of the option, or else a folder in the temporary folder of the system. */
export const runtimeDirPath = (preferredPath: string | undefined): string =>
  preferredPath ?? join(tmpdir(), `modelmount-${getUserId()}`)

/** Creates a folder for apps of this user, if it is missing. Returns why they cannot share it, if so. */
export function openRuntimeDir(path: string): RuntimeDirProblem | undefined {
  if (process.platform !== 'win32' && Buffer.byteLength(path) > maxPathBytes) return 'too-long'
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    if (!isPrivate(path)) return 'not-private'
    accessSync(path, constants.W_OK | constants.X_OK)
    return undefined
  } catch {
    return 'unwritable'
  }
}

export class RuntimeDir {
  readonly #preferredPath: string
  #fallbackPath: string | undefined

  /** @param preferredPath if `undefined`, a folder in the temporary folder of the system */
  constructor(preferredPath: string | undefined) {
    this.#preferredPath = runtimeDirPath(preferredPath)
  }

  /**
   * Returns the path of the folder, and creates the folder if it is missing. Uses a new temporary folder
   * instead if the path is too long, or if the folder is not private or cannot be created. Then the app
   * shares no model processes with other apps. Throws a system error if the temporary folder cannot be
   * created.
   */
  ensure(): string {
    const path = this.#fallbackPath ?? this.#preferredPath
    if (openRuntimeDir(path) === undefined) return path
    this.#fallbackPath = mkdtempSync(join(isShort(tmpdir()) ? tmpdir() : '/tmp', 'modelmount-'))
    return this.#fallbackPath
  }

  /** Whether a process with this name runs. */
  async hasProcess(name: string): Promise<boolean> {
    try {
      const path = this.ensure()
      const record = readRecord(path, name)
      return record !== undefined && (await isRunning(path, name, record))
    } catch {
      return false
    }
  }
}

/** The numeric id, since a user in a container may have no name. */
const getUserId = (): string => String(process.getuid?.() ?? userInfo().username)

const isShort = (folder: string): boolean =>
  process.platform === 'win32' || Buffer.byteLength(folder) <= maxPathBytes - 20

function isPrivate(path: string): boolean {
  const stats = lstatSync(path)
  if (process.platform === 'win32') return stats.isDirectory()
  return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0
}

/**
 * On Windows, a named pipe. Pipes are in no folder, so the name has a hash of the folder: two folders of one user have
 * separate processes, and the name has the same length for each folder.
 */
export const socketAddressOf = (runtimeDir: string, name: string, platform = process.platform): string =>
  platform === 'win32'
    ? `\\\\.\\pipe\\modelmount-${pipeFolderOf(runtimeDir)}-${name}`
    : join(runtimeDir, `${name}.sock`)

/** Windows ignores the case of paths, and takes both slashes. */
const pipeFolderOf = (runtimeDir: string): string =>
  createHash('sha256').update(win32.resolve(runtimeDir).toLowerCase()).digest('hex').slice(0, 16)

export type NamedRecord = readonly [name: string, record: ProcessRecord]

/** Creates the private folder of a process, for its log and snapshots. */
export const createProcessFolder = (runtimeDir: string): string => mkdtempSync(join(runtimeDir, 'process-'))

/** Returns `undefined` for a missing or invalid record. */
export function readRecord(runtimeDir: string, name: string): ProcessRecord | undefined {
  try {
    return ProcessRecord.parse(JSON.parse(readFileSync(recordPathIn(runtimeDir, name), 'utf8')))
  } catch {
    return undefined
  }
}

export function writeRecord(runtimeDir: string, name: string, record: ProcessRecord): void {
  const temporaryPath = `${recordPathIn(runtimeDir, name)}-${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(temporaryPath, JSON.stringify(record), { mode: 0o600 })
    renameOverSync(temporaryPath, recordPathIn(runtimeDir, name))
  } catch (error) {
    rmSync(temporaryPath, { force: true })
    throw error
  }
}

/** Whether a disk, or the quota of the user, is full. */
export const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException | undefined)?.code ?? '')

export const diskFullReason =
  'the disk of its runtime folder is full. Free space there, or set `local.runtimeDir` to a folder on another disk'

export const removeRecord = (runtimeDir: string, name: string): void =>
  rmSync(recordPathIn(runtimeDir, name), { force: true })

/** Returns all records, keyed by process name. Includes records that dead processes have left behind. */
export function readRecords(runtimeDir: string): ReadonlyMap<string, ProcessRecord> {
  const names = listFiles(runtimeDir).flatMap((file) => /^(\w+)\.json$/.exec(file)?.[1] ?? [])
  return new Map(
    names.flatMap((name) => {
      const record = readRecord(runtimeDir, name)
      return record ? [[name, record] as const] : []
    }),
  )
}

/** Returns no files if a cleanup of temporary files has removed the folder. */
function listFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/**
 * Whether the process of a record runs: whether it listens on its socket. Its process id does not show this. It
 * may belong to a zombie or, also after a restart of the machine, to another program. Takes a second at most.
 */
export async function isRunning(runtimeDir: string, name: string, record: ProcessRecord): Promise<boolean> {
  if (!isAlive(record)) return false
  return (await isListening(socketAddressOf(runtimeDir, name))) || isStarting(record)
}

/** Whether a process may have written this record just now, before it opens its socket. */
function isStarting({ state, since }: ProcessRecord): boolean {
  const age = Date.now() - since
  return state === 'loading' && age >= 0 && age < startTimeoutMs
}

/**
 * Whether a process with the id of a record exists. Returns `true` for another PID namespace, since its process
 * ids are unknown here.
 */
export function isAlive({ processId, namespace }: Pick<ProcessRecord, 'processId' | 'namespace'>): boolean {
  if (namespace !== getPidNamespace()) return true
  try {
    process.kill(processId, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Sends SIGKILL. Does nothing for another PID namespace, since containers may share the folder without
 * sharing process ids.
 */
export function killProcess({ processId, namespace }: ProcessRecord): void {
  if (namespace !== getPidNamespace()) return
  try {
    process.kill(processId, 'SIGKILL')
  } catch {} // It has already ended.
}

export function getPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return '' // No namespaces on this system.
  }
}

const recordPathIn = (runtimeDir: string, name: string): string => join(runtimeDir, `${name}.json`)
