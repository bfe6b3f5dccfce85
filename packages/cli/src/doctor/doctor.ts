/** Implements `modelmount doctor`: runs all checks, and prints what they find. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { checkOptions, type DatabaseLocation, type LlmOptions } from '@modelmount/core'
import { inspectMachine } from '@modelmount/core/machine'
import { readFiles } from '../config/files.ts'
import { databaseOf, modelsFolder } from '../database.ts'
import { withFlags } from '../flags.ts'
import { asJson, print } from '../output.ts'
import { type ServeOptions, toLlmOptions } from '../serve-options.ts'
import { checkAnswer } from './answer.ts'
import { checkDatabaseOf } from './database.ts'
import { checkEngine } from './engine.ts'
import { type Finding, findingsOf, plural } from './finding.ts'
import { checkGraphics } from './graphics.ts'
import { checkMemory, checkRamDisk } from './memory.ts'
import { checkModelFolders } from './model-folders.ts'
import { checkNode } from './node.ts'
import { checkOpenFiles } from './open-files.ts'
import { checkPort } from './port.ts'
import { checkProcessor } from './processor.ts'
import { checkRegistries } from './registries.ts'
import { checkRuntimeFolder } from './runtime-folder.ts'

export interface DoctorOptions
  extends Pick<
    ServeOptions,
    'host' | 'port' | 'config' | 'models' | 'model' | 'data' | 'registry' | 'privateRegistry'
  > {
  /** A path or `postgres://…`, instead of `data`. */
  readonly database?: string
  /** Whether to call the registries. */
  readonly online?: boolean
  readonly json?: boolean
}

interface Manifest {
  readonly engines: { readonly node: string }
  readonly dependencies: Readonly<Record<string, string>>
}

export async function doctor({ json = false, ...options }: DoctorOptions): Promise<void> {
  const findings = await findAll(options)
  const problems = findings.filter(({ status }) => status === 'problem').length
  print(json ? asJson({ problems, findings }) : describe(findings))
  if (problems > 0) process.exitCode = 1
}

async function findAll(flags: DoctorOptions): Promise<readonly Finding[]> {
  const { engines, dependencies } = createRequire(import.meta.url)('../../package.json') as Manifest
  const tested = dependencies['node-llama-cpp'] ?? ''
  const { options, findings } = await readOptions(flags)
  const machine = await inspectMachine(options)
  return [
    checkNode(engines.node),
    ...findings,
    checkEngine(machine, tested),
    ...checkProcessor(machine),
    checkGraphics(machine, tested),
    checkMemory(machine),
    ...checkRamDisk(machine, options.local?.promptCache !== 0),
    checkRuntimeFolder(machine),
    await checkAnswer(options.local),
    ...(await checkModelFolders(options, machine.memory?.totalBytes)),
    ...(await checkRegistries(options, flags.online ?? false)),
    ...(await checkDatabaseOf(locationOf(flags, options))),
    checkOpenFiles(),
    await checkPort(flags.host, flags.port),
  ]
}

/** Reads the options of `serve`. If they are invalid, the other checks use the defaults. */
async function readOptions(
  flags: DoctorOptions,
): Promise<{ readonly options: LlmOptions; readonly findings: readonly Finding[] }> {
  const { ok, problem } = findingsOf('configuration')
  // Whether `serve` may use an address depends on flags that are not known here.
  const serveFlags = { ...flags, host: '127.0.0.1' }
  try {
    const options = toLlmOptions(serveFlags, await readFiles(serveFlags))
    checkOptions(options)
    return { options, findings: flags.config === undefined ? [] : [ok(`${flags.config} is valid`)] }
  } catch (error) {
    return { options: {}, findings: [problem(withFlags((error as Error).message))] }
  }
}

/** The database that `serve` would use. Undefined if it would use none, or create one with the first batch only. */
function locationOf(
  { database }: DoctorOptions,
  { auth, prices, models, batches, ...options }: LlmOptions,
): DatabaseLocation | undefined {
  const given = database ?? options.database
  if (given !== undefined) return given
  const folder = [models ?? modelsFolder()].flat().find((one) => typeof one === 'string')
  const unnamed = batches?.database ?? databaseOf(folder ?? modelsFolder())
  const isNeeded = auth === 'keys' || prices !== undefined
  return isNeeded || (typeof unnamed === 'string' && existsSync(unnamed)) ? unnamed : undefined
}

function describe(findings: readonly Finding[]): string {
  const count = (status: Finding['status']): number => findings.filter((one) => one.status === status).length
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.flatMap(({ check, status, message, fix }) => [
    `${status.padEnd(7)}  ${check.padEnd(width)}  ${message}`,
    ...(fix === undefined ? [] : [`${' '.repeat(9 + width)}  → ${fix}`]),
  ])
  return [
    ...lines,
    `${plural(count('problem'), 'problem')}, ${plural(count('warning'), 'warning')}`,
    '',
  ].join('\n')
}
