/** Reports what an app with these options finds on this machine. Loads no model, and no native code in this process. */
import { execFile } from 'node:child_process'
import { availableCores } from '../engine/local/ipc/available-cores.ts'
import { readLibraryVersion } from '../engine/local/ipc/library-version.ts'
import type { MissingEngine, ReportedEngine, ReportedMemory } from '../engine/local/ipc/machine-report.ts'
import { reportArgument } from '../engine/local/ipc/machine-report.ts'
import { openRuntimeDir, type RuntimeDirProblem, runtimeDirPath } from '../engine/local/ipc/runtime-dir.ts'
import { selectEnvironment } from '../engine/local/supervisor/process-environment.ts'
import { type LlmOptions, resolveOptions } from '../options.ts'

/** With which build, memory and cores models run on this machine. */
export interface MachineReport {
  /** The native code and its version, or why it does not run. */
  readonly engine: ReportedEngine & {
    /** Version of node-llama-cpp. Empty if it is not installed. */
    readonly version: string
  }
  /** Absent if the process that reports it could not run. */
  readonly memory: ReportedMemory | undefined
  /** Cores that this process may use, and the threads with which a model computes at most. */
  readonly cpu: { readonly cores: number; readonly threads: number }
  /** The folder with the sockets of model processes. It was created if it was missing. */
  readonly runtimeDir: { readonly path: string; readonly problem: RuntimeDirProblem | undefined }
}

/** How long the native code may take to start, in ms. The drivers of graphics cards take seconds. */
const startTimeoutMs = 30_000

/**
 * Finds out with which build, memory and cores models would run on this machine.
 *
 * @param options as for `createLlm()`. Throws a `TypeError` that names the wrong option
 */
export async function inspectMachine(options: LlmOptions = {}): Promise<MachineReport> {
  const { local } = resolveOptions(options)
  const [memory, engine] = await runReport(local.modelProcessPath, local.environment)
  const cores = availableCores()
  const path = runtimeDirPath(local.runtimeDir)
  return {
    engine: { ...engine, version: readLibraryVersion(local.modelProcessPath) },
    memory,
    cpu: { cores, threads: local.threads ?? Math.max(1, cores - 1) },
    runtimeDir: { path, problem: openRuntimeDir(path) },
  }
}

/** Runs the native code in a separate process, as a model does, since it can crash. */
const runReport = (
  file: string,
  environment: readonly string[],
): Promise<readonly [ReportedMemory | undefined, ReportedEngine]> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [file, reportArgument],
      { env: selectEnvironment(process.env, environment), timeout: startTimeoutMs, windowsHide: true },
      (error, stdout, stderr) => {
        const [memory, engine] = stdout.split('\n').flatMap(parseLine)
        resolve([
          memory as ReportedMemory | undefined,
          (engine as ReportedEngine | undefined) ?? describeFailure(error, stderr),
        ])
      },
    )
  })

/** Native code and drivers may print other lines. */
function parseLine(line: string): readonly object[] {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? [value] : []
  } catch {
    return []
  }
}

function describeFailure(error: Error | null, stderr: string): MissingEngine {
  const { signal, killed, code } = (error ?? {}) as {
    readonly signal?: NodeJS.Signals
    readonly killed?: boolean
    readonly code?: unknown
  }
  const reason = killed
    ? `did not start within ${startTimeoutMs / 1_000} s`
    : signal
      ? `crashed with ${signal}`
      : `ended with the exit code ${code ?? 0}`
  const [line = ''] = stderr.trim().split('\n').slice(-1)
  return { problem: `The engine ${reason}.${line && ` Its last line: ${line}`}` }
}
