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
export class RunFolder {
  readonly #wanted: string
  #own: string | undefined

  /** @param wanted `undefined`: one in the system's folder for temporary files */
  constructor(wanted: string | undefined) {
    this.#wanted = wanted ?? join(tmpdir(), `modelmount-${user()}`)
  }

  /**
   * Makes it where it is missing. Where others can get inside, or nothing can be written, there is a folder for this
   * app alone: then its model processes are not shared. Throws system errors where that cannot be made either.
   */
  enter(): string {
    try {
      const path = this.#own ?? this.#wanted
      if (process.platform === 'win32' || Buffer.byteLength(path) <= maxPathBytes) {
        mkdirSync(path, { recursive: true, mode: 0o700 })
        if (isPrivate(path)) return path
      }
    } catch {}
    this.#own = mkdtempSync(join(isShort(tmpdir()) ? tmpdir() : '/tmp', 'modelmount-'))
    return this.#own
  }

  /** Whether a process of this name runs. */
  has(name: string): boolean {
    try {
      const record = readRecord(this.enter(), name)
      return record !== undefined && isAlive(record)
    } catch {
      return false
    }
  }
}

/** Not every user of a container has a name. */
const user = (): string => String(process.getuid?.() ?? userInfo().username)

const isShort = (folder: string): boolean =>
  process.platform === 'win32' || Buffer.byteLength(folder) <= maxPathBytes - 20

function isPrivate(path: string): boolean {
  const found = lstatSync(path)
  if (process.platform === 'win32') return found.isDirectory()
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
}

/** Of a process: what it is called says what it has loaded, and how. */
export const addressOf = (runFolder: string, name: string): string =>
  process.platform === 'win32' ? `\\\\.\\pipe\\modelmount-${user()}-${name}` : join(runFolder, `${name}.sock`)

/** Its private folder, for its log and what it puts aside. */
export const makeProcessFolder = (runFolder: string): string => mkdtempSync(join(runFolder, 'process-'))

/** What is said of no process, or half, is nothing. */
export function readRecord(runFolder: string, name: string): ProcessRecord | undefined {
  try {
    return ProcessRecord.parse(JSON.parse(readFileSync(recordIn(runFolder, name), 'utf8')))
  } catch {
    return undefined
  }
}

export function writeRecord(runFolder: string, name: string, record: ProcessRecord): void {
  const draft = `${recordIn(runFolder, name)}-${randomBytes(4).toString('hex')}`
  writeFileSync(draft, JSON.stringify(record), { mode: 0o600 })
  renameSync(draft, recordIn(runFolder, name))
}

export const removeRecord = (runFolder: string, name: string): void =>
  rmSync(recordIn(runFolder, name), { force: true })

/** Of all processes, by name; of those, too, that have died without removing it. */
export function readRecords(runFolder: string): ReadonlyMap<string, ProcessRecord> {
  const names = readdirSync(runFolder).flatMap((file) => /^(\w+)\.json$/.exec(file)?.[1] ?? [])
  return new Map(
    names.flatMap((name) => {
      const record = readRecord(runFolder, name)
      return record ? [[name, record] as const] : []
    }),
  )
}

/** Whether the process of a record lives, as far as that can be told from here. */
export function isAlive({ processId, namespace }: ProcessRecord): boolean {
  if (namespace !== ownNamespace()) return true
  try {
    process.kill(processId, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** SIGKILL, where its id means the same process here: containers may share the folder, and not their ids. */
export function killProcess({ processId, namespace }: ProcessRecord): void {
  if (namespace !== ownNamespace()) return
  try {
    process.kill(processId, 'SIGKILL')
  } catch {} // It has ended by itself.
}

/** Of process ids. */
export function ownNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return '' // There are none here.
  }
}

const recordIn = (runFolder: string, name: string): string => join(runFolder, `${name}.json`)
