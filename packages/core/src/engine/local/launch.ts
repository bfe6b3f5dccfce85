/** Starting a model process, in a private folder with its socket and its log, and reaching it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LlmError } from '../../errors.ts'
import type { ProcessConfig } from './protocol.ts'

export interface Launched {
  readonly child: ChildProcess
  readonly folder: string
  readonly address: string
}

/** Throws `upstream`, and leaves nothing behind then. */
export function launch(file: string, config: Omit<ProcessConfig, 'address' | 'folder'>): Launched {
  if (!existsSync(file))
    throw notStarted('its file is missing. Where a bundler lost it, set `local.modelProcess`.')
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(shortTemporaryFolder(), 'modelmount-'))
    const address = addressIn(folder)
    return { child: start(file, { ...config, address, folder }), folder, address }
  } catch (cause) {
    if (folder) removeFolder(folder)
    throw notStarted(codeOf(cause), cause)
  }
}

function start(file: string, config: ProcessConfig): ChildProcess {
  const log = openSync(logIn(config.folder), 'w')
  try {
    const child = spawn(process.execPath, [file, JSON.stringify(config)], {
      // A group of its own: Ctrl-C in a terminal goes to the whole group, and the app drains first.
      detached: true,
      windowsHide: true,
      stdio: ['ignore', log, log],
      // With more pool threads, two compute threads often share a core.
      env: { ...process.env, NODE_OPTIONS: undefined, UV_THREADPOOL_SIZE: '1' },
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

export function connected(address: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(address)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** What the native code wrote before it ended. */
export function lastWords(folder: string): string {
  try {
    return readFileSync(logIn(folder), 'utf8').slice(-2_000)
  } catch {
    return ''
  }
}

/** Called in a listener of the host, where an error would end it; a folder that stays is the lesser evil. */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}

/** What may be shown: the message of a system error has paths in it. */
export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown reason'

const logIn = (folder: string): string => join(folder, 'log')

const addressIn = (folder: string): string =>
  process.platform === 'win32'
    ? `\\\\.\\pipe\\modelmount-${randomBytes(12).toString('hex')}`
    : join(folder, 'socket')

/** The path of a Unix socket over about 100 bytes is silently cut, and the socket lands elsewhere. */
function shortTemporaryFolder(): string {
  const folder = tmpdir()
  return process.platform === 'win32' || Buffer.byteLength(folder) <= 70 ? folder : '/tmp'
}

const notStarted = (why: string, cause?: unknown): LlmError =>
  new LlmError('upstream', `The model process cannot be started: ${why}`, {}, { cause })
