/** Runs the tests of llama.cpp's server. Needs Python 3.10 or later, and a package index. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export interface CaseOutcome {
  /** File, function and parameters, such as `test_basic.py::test_server_models`. */
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** Of a failure. */
  readonly message: string
}

export interface SuiteRun {
  /** Folder of the tests. */
  readonly tests: string
  /** Executable in place of llama-server. */
  readonly server: string
  /** Files by the names of the models. */
  readonly models: Readonly<Record<string, string>>
  /** Names of files, functions or cases that do not run. */
  readonly leftOut: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

const here = fileURLToPath(new URL('.', import.meta.url))

export class PythonSuite {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Installs the requirements. @param folder an empty folder */
  static async install(folder: string): Promise<PythonSuite> {
    const run = promisify(execFile)
    await run('python3', ['-m', 'venv', folder])
    const flags = ['--quiet', '--disable-pip-version-check', '--no-compile']
    const requirements = join(here, 'requirements.txt')
    await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', ...flags, '-r', requirements])
    return new PythonSuite(folder)
  }

  /** Resolves with the outcome of each case, whether it passes or fails. Slow cases need models of gigabytes. */
  async run({ tests, server, models, leftOut, environment }: SuiteRun): Promise<readonly CaseOutcome[]> {
    const outcomes = join(this.#folder, 'outcomes.jsonl')
    rmSync(outcomes, { force: true })
    const flags = ['-p', 'adaptor', '-p', 'no:cacheprovider', '-q', '-m', 'not slow', '--timeout', '60']
    const env = {
      ...process.env,
      ...environment,
      ...{
        LLAMA_SERVER_BIN_PATH: server,
        OUTCOMES: outcomes,
        STAND_INS: JSON.stringify(models),
        LEFT_OUT: JSON.stringify(leftOut),
      },
      ...{ PYTHONPATH: here, PYTHONDONTWRITEBYTECODE: '1' },
    }
    const options = { cwd: tests, env, maxBuffer: 2 ** 28 }
    const python = join(this.#folder, 'bin/python')
    // pytest fails if any case does.
    const error = await promisify(execFile)(
      python,
      ['-m', 'pytest', ...flags, ...(process.env.ONLY?.split(' ') ?? ['unit'])],
      options,
    ).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (!existsSync(outcomes)) throw new Error('No case has run.', { cause: error })
    const lines = readFileSync(outcomes, 'utf8').trimEnd().split('\n')
    return lines.map((line) => JSON.parse(line) as CaseOutcome)
  }
}
