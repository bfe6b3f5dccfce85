/** Several apps on one machine: they share what is loaded, and none of them can take it from the others. */
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
  // Again, where a process that leaves has just written there.
  await Promise.all(
    [models, runtimeDir].map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 })),
  )
})

interface App {
  readonly child: ChildProcess
  ask(maxTokens: number): { readonly processId: Promise<number>; readonly end: Promise<End> }
}
type End = { readonly pieces: number; readonly firstMs: number } | { readonly code: string }

/** An app in a process of its own, ready to be asked. */
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
        throw new Error('The app has ended.')
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

test('four workers that load a model at the same time load it once', async () => {
  const workers = await startApps(4)

  const calls = workers.map(({ ask }) => ask(5))

  const ids = await Promise.all(calls.map(({ processId }) => processId))
  expect(new Set(ids).size).toBe(1)
  expect(await Promise.all(calls.map((call) => call.end))).toMatchObject(Array(4).fill({ pieces: 5 }))
  // Those that came second leave, and nothing of them stays.
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(1)
})

test('the process outlives the app that started it, and nobody else’s answer ends', async () => {
  const starter = await startApp()
  const processId = await starter.ask(1).processId
  const [other] = await startApps(1)
  const going = (other as App).ask(300)
  expect(await going.processId).toBe(processId)

  await end(starter)

  expect(await going.end).toMatchObject({ pieces: 300 })
  await end(other as App)
  await until(() => !isAlive(processId), 15_000)
  expect(await readdir(runtimeDir)).toEqual([])
})

test('an app that starts anew finds its model loaded', async () => {
  const before = await startApp()
  const processId = await before.ask(1).processId
  await end(before)

  const after = await startApp()
  const call = after.ask(1)

  expect(await call.processId).toBe(processId)
})

test('a process whose starter dies before it could join it leaves by itself', async () => {
  const starter = await startApp()
  starter.ask(1)
  await expect
    .poll(() => readdir(runtimeDir), { interval: 1, timeout: 10_000 })
    .toContainEqual(expect.stringMatching(/json$/))

  await end(starter)

  await expect.poll(() => readdir(runtimeDir), { timeout: 20_000 }).toEqual([])
})

test('what a killed process and its killed app have left behind is in nobody’s way', async () => {
  const before = await startApp()
  const killed = await before.ask(1).processId
  process.kill(before.child.pid as number, 'SIGSTOP')
  process.kill(killed, 'SIGKILL')
  await end(before)
  const left = await readdir(runtimeDir)

  const after = await startApp()
  const call = after.ask(3)

  expect(await call.processId).not.toBe(killed)
  expect(await call.end).toMatchObject({ pieces: 3 })
  expect(left.filter((name) => name.endsWith('.sock'))).toHaveLength(1)
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(1)
})

test('a process that stands still is replaced for whoever wants to join it', async () => {
  const before = await startApp()
  const stopped = await before.ask(1).processId
  process.kill(stopped, 'SIGSTOP')

  const after = await startApp()
  const call = after.ask(3)

  expect(await call.processId).not.toBe(stopped)
  expect(await call.end).toMatchObject({ pieces: 3 })
  await until(() => !isAlive(stopped), 10_000)
})

test('apps that load a model in different ways each have a process, side by side', async () => {
  const one = await startApp({ contextSize: 512 })
  const other = await startApp({ contextSize: 1024 })

  const ids = await Promise.all([one, other].map((app) => app.ask(5).processId))

  expect(new Set(ids).size).toBe(2)
})

test('an app of another version has a process of its own, and both answer', async () => {
  const older = await startApp({}, ['--import', besideThis('first-version.mjs')])
  const [app] = await startApps(1)

  const calls = [older, app as App].map(({ ask }) => ask(5))

  expect(new Set(await Promise.all(calls.map(({ processId }) => processId))).size).toBe(2)
  expect(await Promise.all(calls.map((call) => call.end))).toMatchObject(Array(2).fill({ pieces: 5 }))
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(2)
})

test('apps without a folder in common work, and share nothing', async () => {
  const apart = join(runtimeDir, 'apart')
  await mkdir(apart, { mode: 0o700 })
  const [one, other] = [await startApp(), await startApp({ runtimeDir: apart })]

  const ids = await Promise.all([one, other].map((app) => app.ask(5).processId))

  expect(new Set(ids).size).toBe(2)
})

test('an idle process leaves when its memory is needed, and the next call does not notice; a busy one stays', async () => {
  const app = await startApp()
  const idle = await app.ask(1).processId
  await app.ask(1).end
  const [socket] = (await readdir(runtimeDir)).filter((name) => name.endsWith('.sock'))

  await askToLeave(join(runtimeDir, socket as string))
  await until(() => !isAlive(idle), 15_000)
  const next = app.ask(400)
  const busy = await next.processId
  await askToLeave(join(runtimeDir, socket as string))

  expect(busy).not.toBe(idle)
  expect(await next.end).toMatchObject({ pieces: 400 })
  expect(isAlive(busy)).toBe(true)
})

/** As another model process does it. Resolves when the answer, the end of the connection, is there. */
async function askToLeave(address: string): Promise<void> {
  const socket = connect(address)
  const body = Buffer.from(JSON.stringify({ type: 'yield' }))
  const header = Buffer.alloc(4)
  header.writeUInt32BE(body.length)
  socket.resume().write(Buffer.concat([header, body]))
  await once(socket, 'close')
}
