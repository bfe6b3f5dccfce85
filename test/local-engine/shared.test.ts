/** Several apps on one machine share model processes, and no app can end the answers of another. */
import { type ChildProcess, fork } from 'node:child_process'
import { on, once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LocalOptions } from '@modelmount/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import { isAlive, until } from '../support/processes.ts'

let models: string
let runtimeDir: string
let apps: App[] = []

beforeEach(async () => {
  models = await mkdtemp(join(tmpdir(), 'models-'))
  runtimeDir = await mkdtemp(join(tmpdir(), 'run-'))
  await copyFile(noiseModel, join(models, 'noise.gguf'))
})

afterEach(async () => {
  for (const { child } of apps) child.kill('SIGKILL')
  apps = []
  // Retries, because a model process that is exiting may still write there.
  await Promise.all(
    [models, runtimeDir].map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 })),
  )
})

interface App {
  readonly child: ChildProcess
  ask(maxTokens: number): { readonly processId: Promise<number>; readonly end: Promise<End> }
}
type End = { readonly pieces: number; readonly firstMs: number } | { readonly code: string }

/** Starts an app in a child process, and waits until it accepts calls. */
async function startApp(local: LocalOptions = {}, execArgv: readonly string[] = []): Promise<App> {
  const child = fork(
    besideThis('worker.mjs'),
    [JSON.stringify({ models, local: { runtimeDir, ...local } })],
    {
      env: { ...process.env, NODE_OPTIONS: '' },
      execArgv: [...execArgv],
    },
  )
  let calls = 0
  const app: App = {
    child,
    ask: (maxTokens) => {
      const id = ++calls
      child.send({ id, maxTokens })
      const find = async <T>(key: string): Promise<T> => {
        for await (const [message] of on(child, 'message'))
          if (message.id === id && (message[key] !== undefined || message.error))
            return message[key] ?? message.error
        throw new Error('The app has exited.')
      }
      return { processId: find<number>('processId'), end: find<End>('done') }
    },
  }
  apps.push(app)
  await once(child, 'message')
  return app
}

const besideThis = (name: string): string => fileURLToPath(new URL(`./${name}`, import.meta.url))
const startApps = (count: number): Promise<App[]> =>
  Promise.all(Array.from({ length: count }, () => startApp()))
const end = async (app: App): Promise<void> => {
  const exit = once(app.child, 'exit')
  app.child.kill('SIGKILL')
  await exit
}
const processFolders = async (): Promise<readonly string[]> =>
  (await readdir(runtimeDir)).filter((name) => name.startsWith('process-'))

test('four apps that load a model at the same time share one model process', async () => {
  const workers = await startApps(4)

  const calls = workers.map(({ ask }) => ask(5))

  const ids = await Promise.all(calls.map(({ processId }) => processId))
  expect(new Set(ids).size).toBe(1)
  expect(await Promise.all(calls.map((call) => call.end))).toMatchObject(Array(4).fill({ pieces: 5 }))
  // The superfluous model processes exit, and leave no folders.
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(1)
})

test('a model process outlives the app that started it, and completes the answers of other apps', async () => {
  const starter = await startApp()
  const processId = await starter.ask(1).processId
  const [other] = await startApps(1)
  const running = (other as App).ask(300)
  expect(await running.processId).toBe(processId)

  await end(starter)

  expect(await running.end).toMatchObject({ pieces: 300 })
  await end(other as App)
  await until(() => !isAlive(processId), 15_000)
  expect(await readdir(runtimeDir)).toEqual([])
})

test('an app that restarts uses the model process of its previous run', async () => {
  const before = await startApp()
  const processId = await before.ask(1).processId
  await end(before)

  const after = await startApp()
  const call = after.ask(1)

  expect(await call.processId).toBe(processId)
})

test('a model process exits if the app that started it dies before it connects', async () => {
  const starter = await startApp()
  starter.ask(1)
  await expect
    .poll(() => readdir(runtimeDir), { interval: 1, timeout: 10_000 })
    .toContainEqual(expect.stringMatching(/json$/))

  await end(starter)

  await expect.poll(() => readdir(runtimeDir), { timeout: 20_000 }).toEqual([])
})

test('files left by a killed model process and its killed app do not affect the next app', async () => {
  const before = await startApp()
  const killed = await before.ask(1).processId
  process.kill(before.child.pid as number, 'SIGSTOP')
  process.kill(killed, 'SIGKILL')
  await end(before)
  const remaining = await readdir(runtimeDir)

  const after = await startApp()
  const call = after.ask(3)

  expect(await call.processId).not.toBe(killed)
  expect(await call.end).toMatchObject({ pieces: 3 })
  expect(remaining.filter((name) => name.endsWith('.sock'))).toHaveLength(1)
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(1)
})

test('a stopped model process is replaced when an app connects to it', async () => {
  const before = await startApp()
  const stopped = await before.ask(1).processId
  process.kill(stopped, 'SIGSTOP')

  const after = await startApp()
  const call = after.ask(3)

  expect(await call.processId).not.toBe(stopped)
  expect(await call.end).toMatchObject({ pieces: 3 })
  await until(() => !isAlive(stopped), 10_000)
})

test('apps with different context sizes have separate model processes', async () => {
  const one = await startApp({ contextSize: 512 })
  const other = await startApp({ contextSize: 1024 })

  const ids = await Promise.all([one, other].map((app) => app.ask(5).processId))

  expect(new Set(ids).size).toBe(2)
})

test('an app with another protocol version has a separate model process, and both apps get answers', async () => {
  const older = await startApp({}, ['--import', besideThis('first-version.mjs')])
  const [app] = await startApps(1)

  const calls = [older, app as App].map(({ ask }) => ask(5))

  expect(new Set(await Promise.all(calls.map(({ processId }) => processId))).size).toBe(2)
  expect(await Promise.all(calls.map((call) => call.end))).toMatchObject(Array(2).fill({ pieces: 5 }))
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(2)
})

test('apps with different runtime folders have separate model processes', async () => {
  const apart = join(runtimeDir, 'apart')
  await mkdir(apart, { mode: 0o700 })
  const [one, other] = [await startApp(), await startApp({ runtimeDir: apart })]

  const ids = await Promise.all([one, other].map((app) => app.ask(5).processId))

  expect(new Set(ids).size).toBe(2)
})

test('when its memory is needed, an idle model process exits, and a busy one completes its answer', async () => {
  const app = await startApp()
  const idle = await app.ask(1).processId
  await app.ask(1).end
  const [socket] = (await readdir(runtimeDir)).filter((name) => name.endsWith('.sock'))

  await requestYield(join(runtimeDir, socket as string))
  await until(() => !isAlive(idle), 15_000)
  const next = app.ask(400)
  const busy = await next.processId
  await requestYield(join(runtimeDir, socket as string))

  expect(busy).not.toBe(idle)
  expect(await next.end).toMatchObject({ pieces: 400 })
  expect(isAlive(busy)).toBe(true)
})

/** Sends the `yield` message of a model process that needs memory. Resolves when the connection closes. */
async function requestYield(address: string): Promise<void> {
  const socket = connect(address)
  const body = Buffer.from(JSON.stringify({ type: 'yield' }))
  const header = Buffer.alloc(4)
  header.writeUInt32BE(body.length)
  socket.resume().write(Buffer.concat([header, body]))
  await once(socket, 'close')
}
