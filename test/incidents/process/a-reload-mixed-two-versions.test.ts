/**
 * During a rolling reload, apps of two versions ran side by side. The new app used a model process of the old
 * version, whose messages and cached prompts had another format.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { noiseModel } from '../../support/models.ts'
import { isAlive, until } from '../../support/processes.ts'

/** How an app and its model processes get this version. */
interface Version {
  readonly processFile: string
  readonly execArgv: string[]
}

const models = emptyFolder()
const { version } = JSON.parse(
  readFileSync(new URL('../../../packages/core/package.json', import.meta.url), 'utf8'),
)
const fileOf = (name: string): string => fileURLToPath(new URL(`../../local-engine/${name}`, import.meta.url))
const newer: Version = { processFile: fileOf('full-machine.mjs'), execArgv: [] }
const older: Version = {
  processFile: fileOf('older-process.mjs'),
  execArgv: ['--import', fileOf('older-version.mjs')],
}

let runtimeDir: string
let apps: ChildProcess[] = []

beforeAll(() => copyFile(noiseModel, join(models, 'noise.gguf')))

beforeEach(async () => {
  runtimeDir = await mkdtemp(join(tmpdir(), 'run-'))
})

afterEach(async () => {
  for (const app of apps) app.kill('SIGKILL')
  apps = []
  await until(() => filesWith('.json').length === 0, 20_000)
  await rm(runtimeDir, { recursive: true, force: true, maxRetries: 5 })
})

const filesWith = (ending: string): readonly string[] =>
  readdirSync(runtimeDir).filter((name) => name.endsWith(ending))

/** Starts an app of one version, and asks its model for two tokens. Returns what the app sends. */
async function ask({ processFile, execArgv }: Version, freeBytes: number): Promise<Outcome> {
  const local = { runtimeDir, modelProcessPath: processFile, parallel: 1, environment: ['FREE_BYTES'] }
  const options = { models, local }
  const app = fork(fileOf('worker.mjs'), [JSON.stringify(options)], {
    env: { ...process.env, NODE_OPTIONS: '', FREE_BYTES: String(freeBytes) },
    execArgv,
  })
  apps.push(app)
  await once(app, 'message')
  app.send({ id: 1, maxTokens: 2 })
  let processId: number | undefined
  for await (const [message] of on(app, 'message')) {
    processId ??= message.processId
    if (message.done) return { processId, pieces: message.done.pieces }
    if (message.error) return { error: message.error }
  }
  throw new Error('The app has exited.')
}

interface Outcome {
  readonly processId?: number | undefined
  readonly pieces?: number
  readonly error?: { readonly code: string; readonly message: string }
}

const plenty = 1e12

test('each version has a separate process, socket and folder, and apps of one version share them', async () => {
  const outcomes = [await ask(older, plenty), await ask(newer, plenty), await ask(newer, plenty)]

  expect(outcomes).toMatchObject(Array(3).fill({ pieces: 2 }))
  const [first, second, third] = outcomes.map(({ processId }) => processId)
  expect(second).not.toBe(first)
  expect(third).toBe(second)
  expect([filesWith('.json').length, filesWith('.sock').length]).toEqual([2, 2])
  expect(readdirSync(runtimeDir).filter((name) => name.startsWith('process-'))).toHaveLength(2)
})

test('the versions share the memory of the machine: an idle process of the other one is evicted', async () => {
  const before = await ask(older, plenty)
  const idle = (): { state?: string; sizeBytes?: number } =>
    filesWith('.json').map((name) => JSON.parse(readFileSync(join(runtimeDir, name), 'utf8')))[0] ?? {}
  await until(() => idle().state === 'idle', 5_000)

  // Too little memory for the weights of both processes.
  const after = await ask(newer, (idle().sizeBytes ?? 0) + 2e6)

  expect(after.pieces).toBe(2)
  expect(after.processId).not.toBe(before.processId)
  await until(() => !isAlive(before.processId as number), 5_000)
})

test('an app whose files were replaced by an update reports that it must restart', async () => {
  const { error } = await ask({ ...older, processFile: newer.processFile }, plenty)

  expect(error).toMatchObject({
    code: 'upstream',
    message: expect.stringContaining('another version of @modelmount/core or node-llama-cpp was installed'),
  })
})

test('a model process whose node-llama-cpp was replaced by an update does not start', async () => {
  const config = JSON.stringify({ packageVersion: version, libraryVersion: '0.0.1' })
  const child = spawn(process.execPath, [newer.processFile, config], { stdio: 'ignore' })

  const [exitCode] = await once(child, 'exit')

  expect(exitCode).toBe(11)
})
