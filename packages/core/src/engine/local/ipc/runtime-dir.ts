/**
 * The folder where the apps of one user meet the model processes of the machine: beside the socket of each process
 * lies its record, which says what it takes and whether it is busy.
 */
import { randomBytes } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { ProcessRecord } from './protocol.ts'

/** The path of a Unix socket over about 100 bytes is silently cut, and the socket lands elsewhere. */
const maxPathBytes = 75

/** Where an app meets its model processes. */
export class RuntimeDir {
  readonly #preferredPath: string
  #fallbackPath: string | undefined

  /** @param preferredPath `undefined`: one in the system's folder for temporary files */
  constructor(preferredPath: string | undefined) {
    this.#preferredPath = preferredPath ?? join(tmpdir(), `modelmount-${getUserId()}`)
  }

  /**
   * Makes it where it is missing. Where others can get inside, or nothing can be written, there is a folder for this
   * app alone: then its model processes are not shared. Throws system errors where that cannot be made either.
   */
  ensure(): string {
    try {
      const path = this.#fallbackPath ?? this.#preferredPath
      if (process.platform === 'win32' || Buffer.byteLength(path) <= maxPathBytes) {
        mkdirSync(path, { recursive: true, mode: 0o700 })
        if (isPrivate(path)) return path
      }
    } catch {}
    this.#fallbackPath = mkdtempSync(join(isShort(tmpdir()) ? tmpdir() : '/tmp', 'modelmount-'))
    return this.#fallbackPath
  }

  /** Whether a process of this name runs. */
  hasProcess(name: string): boolean {
    try {
      const record = readRecord(this.ensure(), name)
      return record !== undefined && isAlive(record)
    } catch {
      return false
    }
  }
}

/** Not every user of a container has a name. */
const getUserId = (): string => String(process.getuid?.() ?? userInfo().username)

const isShort = (folder: string): boolean =>
  process.platform === 'win32' || Buffer.byteLength(folder) <= maxPathBytes - 20

function isPrivate(path: string): boolean {
  const stats = lstatSync(path)
  if (process.platform === 'win32') return stats.isDirectory()
  return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0
}

/** Of a process: what it is called says what it has loaded, and how. */
export const socketAddressOf = (runtimeDir: string, name: string): string =>
  process.platform === 'win32'
    ? `\\\\.\\pipe\\modelmount-${getUserId()}-${name}`
    : join(runtimeDir, `${name}.sock`)

/** Its private folder, for its log and what it puts aside. */
export const createProcessFolder = (runtimeDir: string): string => mkdtempSync(join(runtimeDir, 'process-'))

/** What is said of no process, or half, is nothing. */
export function readRecord(runtimeDir: string, name: string): ProcessRecord | undefined {
  try {
    return ProcessRecord.parse(JSON.parse(readFileSync(recordPathIn(runtimeDir, name), 'utf8')))
  } catch {
    return undefined
  }
}

export function writeRecord(runtimeDir: string, name: string, record: ProcessRecord): void {
  const temporaryPath = `${recordPathIn(runtimeDir, name)}-${randomBytes(4).toString('hex')}`
  writeFileSync(temporaryPath, JSON.stringify(record), { mode: 0o600 })
  renameSync(temporaryPath, recordPathIn(runtimeDir, name))
}

export const removeRecord = (runtimeDir: string, name: string): void =>
  rmSync(recordPathIn(runtimeDir, name), { force: true })

/** Of all processes, by name; of those, too, that have died without removing it. */
export function readRecords(runtimeDir: string): ReadonlyMap<string, ProcessRecord> {
  const names = readdirSync(runtimeDir).flatMap((file) => /^(\w+)\.json$/.exec(file)?.[1] ?? [])
  return new Map(
    names.flatMap((name) => {
      const record = readRecord(runtimeDir, name)
      return record ? [[name, record] as const] : []
    }),
  )
}

/** Whether the process of a record lives, as far as that can be told from here. */
export function isAlive({ processId, namespace }: Pick<ProcessRecord, 'processId' | 'namespace'>): boolean {
  if (namespace !== getPidNamespace()) return true
  try {
    process.kill(processId, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** SIGKILL, where its id means the same process here: containers may share the folder, and not their ids. */
export function killProcess({ processId, namespace }: ProcessRecord): void {
  if (namespace !== getPidNamespace()) return
  try {
    process.kill(processId, 'SIGKILL')
  } catch {} // It has ended by itself.
}

/** Of process ids. */
export function getPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return '' // There are none here.
  }
}

const recordPathIn = (runtimeDir: string, name: string): string => join(runtimeDir, `${name}.json`)
