/** Starts a model process with a private folder for its log. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { LlmError, type LlmErrorDetails } from '../../../errors.ts'
import type { ProcessConfig } from '../ipc/process-config.ts'
import { createProcessFolder, diskFullReason, isDiskFull } from '../ipc/runtime-dir.ts'
import { selectEnvironment } from './process-environment.ts'

/**
 * Semi-space size in MB. V8's default of 16 lets the process grow more during short calls and saves no time.
 */
const semiSpaceFlag = '--max-semi-space-size=4'

export interface LaunchedProcess {
  readonly child: ChildProcess
  readonly folder: string
}

/**
 * Throws an `LlmError` `upstream` and removes the folder when the process cannot be started.
 * @param poolThreads size of libuv's pool, which runs the native code
 * @param environment names of further environment variables that the process inherits
 */
export function launchProcess(
  file: string,
  config: Omit<ProcessConfig, 'folder'>,
  poolThreads: number,
  environment: readonly string[],
): LaunchedProcess {
  if (!existsSync(file))
    throw processNotStarted('its file is missing. If a bundler omitted it, set `local.modelProcessPath`.')
  let folder: string | undefined
  try {
    folder = createProcessFolder(config.runtimeDir)
    const variables = { ...selectEnvironment(process.env, environment), UV_THREADPOOL_SIZE: `${poolThreads}` }
    return { child: spawnProcess(file, { ...config, folder }, variables), folder }
  } catch (cause) {
    if (folder) removeFolder(folder)
    throw startFailed(cause)
  }
}

function spawnProcess(file: string, config: ProcessConfig, env: NodeJS.ProcessEnv): ChildProcess {
  const log = openSync(logPathIn(config.folder), 'w')
  try {
    const child = spawn(process.execPath, [semiSpaceFlag, file, JSON.stringify(config)], {
      // A separate process group. Ctrl-C in a terminal signals the whole group of the app, but the app drains
      // its calls first.
      detached: true,
      // The process may outlive the app, and the folder of the app may be removed.
      cwd: config.runtimeDir,
      windowsHide: true,
      stdio: ['ignore', log, log],
      env,
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** Returns the end of the log: at most 2,000 characters. */
export function readLogTail(folder: string): string {
  try {
    return readFileSync(logPathIn(folder), 'utf8').slice(-2_000)
  } catch {
    return ''
  }
}

/**
 * Never throws, since an error in an event listener would end the host app. A folder that cannot be removed
 * stays.
 */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}

/** Returns the code of a system error. Clients may see the code. The message can contain paths. */
export const errorCodeOf = (error: unknown): string =>
  (error as NodeJS.ErrnoException).code ?? 'unknown reason'

const logPathIn = (folder: string): string => join(folder, 'log')

/** Tells clients the code of a system error, and which option names the folder on a full disk. */
export const startFailed = (cause: unknown): LlmError =>
  isDiskFull(cause)
    ? processNotStarted(`${errorCodeOf(cause)}: ${diskFullReason}`, cause, { setup: true })
    : processNotStarted(errorCodeOf(cause), cause)

/** @param details with `setup`, the failure does not count as one of the model */
export const processNotStarted = (
  reason: string,
  cause?: unknown,
  details: Pick<LlmErrorDetails, 'setup'> = {},
): LlmError => new LlmError('upstream', `The model process cannot be started: ${reason}`, details, { cause })
