/** Starting a model process, with a private folder and its log in it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { LlmError } from '../../../errors.ts'
import type { ProcessConfig } from '../ipc/protocol.ts'
import { createProcessFolder } from '../ipc/runtime-dir.ts'

/** In MB. V8's own 16 let the process grow more over short calls, and save no work there. */
const semiSpaceFlag = '--max-semi-space-size=4'

export interface LaunchedProcess {
  readonly child: ChildProcess
  readonly folder: string
}

/**
 * Throws `upstream`, and leaves nothing behind then.
 * @param poolThreads on which the library works
 */
export function launchProcess(
  file: string,
  config: Omit<ProcessConfig, 'folder'>,
  poolThreads: number,
): LaunchedProcess {
  if (!existsSync(file))
    throw processNotStarted('its file is missing. Where a bundler lost it, set `local.modelProcessPath`.')
  let folder: string | undefined
  try {
    folder = createProcessFolder(config.runtimeDir)
    return { child: spawnProcess(file, { ...config, folder }, poolThreads), folder }
  } catch (cause) {
    if (folder) removeFolder(folder)
    throw processNotStarted(errorCodeOf(cause), cause)
  }
}

function spawnProcess(file: string, config: ProcessConfig, poolThreads: number): ChildProcess {
  const log = openSync(logPathIn(config.folder), 'w')
  try {
    const child = spawn(process.execPath, [semiSpaceFlag, file, JSON.stringify(config)], {
      // A group of its own: Ctrl-C in a terminal goes to the whole group, and the app drains first.
      detached: true,
      // It may outlive the app, whose folder may go.
      cwd: config.runtimeDir,
      windowsHide: true,
      stdio: ['ignore', log, log],
      env: { ...process.env, NODE_OPTIONS: undefined, UV_THREADPOOL_SIZE: String(poolThreads) },
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** What the native code wrote before it ended. */
export function readLogTail(folder: string): string {
  try {
    return readFileSync(logPathIn(folder), 'utf8').slice(-2_000)
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
export const errorCodeOf = (error: unknown): string =>
  (error as NodeJS.ErrnoException).code ?? 'unknown reason'

const logPathIn = (folder: string): string => join(folder, 'log')

export const processNotStarted = (reason: string, cause?: unknown): LlmError =>
  new LlmError('upstream', `The model process cannot be started: ${reason}`, {}, { cause })
