/** Several apps on one machine share model processes, and no app can end the answers of another. */
import { type ChildProcess, fork } from 'node:child_process'
import { on, once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LocalOptions } from '@modelmount/core'
import { describe, expect, type TestContext, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import { isAlive, until } from '../support/processes.ts'

interface App {
  readonly child: ChildProcess
  ask(maxTokens: number): { readonly processId: Promise<number>; readonly end: Promise<End> }
}
type End = { readonly pieces: number; readonly firstMs: number } | { readonly code: string }

/** A new runtime folder, and apps that share it, since several tests run at the same time. */
interface Machine {
  readonly runtimeDir: string
  /** Starts an app in a child process, and waits until it accepts calls. */
  startApp(local?: LocalOptions, execArgv?: readonly string[]): Promise<App>
  /** Folders of the running model processes. */
  processFolders(): Promise<readonly string[]>
}

async function openMachine({ onTestFinished }: TestContext): Promise<Machine> {
  const models = await mkdtemp(join(tmpdir(), 'models-'))
  const runtimeDir = await mkdtemp(join(tmpdir(), 'run-'))
  const apps: App[] = []
  onTestFinished(async () => {
    for (const { child } of apps) child.kill('SIGKILL')
    // Retries, because a model process that is exiting may still write there.
    await Promise.all(
      [models, runtimeDir].map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 })),
    )
  })
  await copyFile(noiseModel, join(models, 'noise.gguf'))
  return {
    runtimeDir,
    startApp: async (local = {}, execArgv = []) => {
      const options = { models, local: { runtimeDir, ...local } }
      const child = fork(besideThis('worker.mjs'), [JSON.stringify(options)], {
        env: { ...process.env, NODE_OPTIONS: '' },
        execArgv: [...execArgv],
      })
      const app = appIn(child)
      apps.push(app)
      await once(child, 'message')
      return app
    },
    processFolders: async () => (await readdir(runtimeDir)).filter((name) => name.startsWith('process-')),
  }
}

function appIn(child: ChildProcess): App {
  let calls = 0
  return {
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
}

const besideThis = (name: string): string => fileURLToPath(new URL(`./${name}`, import.meta.url))
const end = async (app: App): Promise<void> => {
  const exit = once(app.child, 'exit')
  app.child.kill('SIGKILL')
  await exit
}

test('four apps that load a model at the same time share one model process', async (context) => {
  const { startApp, processFolders } = await openMachine(context)
  const workers = await Promise.all([1, 2, 3, 4].map(() => startApp()))

  const calls = workers.map(({ ask }) => ask(5))

  const ids = await Promise.all(calls.map(({ processId }) => processId))
  expect(new Set(ids).size).toBe(1)
  expect(await Promise.all(calls.map((call) => call.end))).toMatchObject(Array(4).fill({ pieces: 5 }))
  // The superfluous model processes exit, and leave no folders.
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(1)
})

test('an app that restarts uses the model process of its previous run', async (context) => {
  const { startApp } = await openMachine(context)
  const before = await startApp()
  const processId = await before.ask(1).processId
  await end(before)

  const after = await startApp()
  const call = after.ask(1)

  expect(await call.processId).toBe(processId)
})

test('files left by a killed model process and its killed app do not affect the next app', async (context) => {
  const { runtimeDir, startApp, processFolders } = await openMachine(context)
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

test('apps with different context sizes have separate model processes', async (context) => {
  const { startApp } = await openMachine(context)
  const one = await startApp({ contextSize: 512 })
  const other = await startApp({ contextSize: 1024 })

  const ids = await Promise.all([one, other].map((app) => app.ask(5).processId))

  expect(new Set(ids).size).toBe(2)
})

test('an app with another protocol version has a separate model process, and both apps get answers', async (context) => {
  const { startApp, processFolders } = await openMachine(context)
  const older = await startApp({}, ['--import', besideThis('first-version.mjs')])
  const app = await startApp()

  const calls = [older, app].map(({ ask }) => ask(5))

  expect(new Set(await Promise.all(calls.map(({ processId }) => processId))).size).toBe(2)
  expect(await Promise.all(calls.map((call) => call.end))).toMatchObject(Array(2).fill({ pieces: 5 }))
  await expect.poll(processFolders, { timeout: 10_000 }).toHaveLength(2)
})

test('apps with different runtime folders have separate model processes', async (context) => {
  const { runtimeDir, startApp } = await openMachine(context)
  const apart = join(runtimeDir, 'apart')
  await mkdir(apart, { mode: 0o700 })
  const [one, other] = [await startApp(), await startApp({ runtimeDir: apart })]

  const ids = await Promise.all([one, other].map((app) => app.ask(5).processId))

  expect(new Set(ids).size).toBe(2)
})

test('when its memory is needed, an idle model process exits, and a busy one completes its answer', async (context) => {
  const { runtimeDir, startApp } = await openMachine(context)
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

// Idle for seconds each, so they run side by side.
describe.concurrent('after a time limit', () => {
  test('a model process outlives the app that started it, and completes the answers of other apps', async (context) => {
    const { runtimeDir, startApp } = await openMachine(context)
    const starter = await startApp()
    const processId = await starter.ask(1).processId
    const other = await startApp()
    const running = other.ask(300)
    expect(await running.processId).toBe(processId)

    await end(starter)

    expect(await running.end).toMatchObject({ pieces: 300 })
    await end(other)
    await until(() => !isAlive(processId), 15_000)
    expect(await readdir(runtimeDir)).toEqual([])
  })

  test('a model process exits if the app that started it dies before it connects', async (context) => {
    const { runtimeDir, startApp } = await openMachine(context)
    const starter = await startApp()
    starter.ask(1)
    await expect
      .poll(() => readdir(runtimeDir), { interval: 1, timeout: 10_000 })
      .toContainEqual(expect.stringMatching(/json$/))

    await end(starter)

    await expect.poll(() => readdir(runtimeDir), { timeout: 20_000 }).toEqual([])
  })

  test('other processes that check whether a model process runs do not keep it running', async (context) => {
    const { runtimeDir, startApp } = await openMachine(context)
    const app = await startApp()
    const call = app.ask(1)
    const processId = await call.processId
    await call.end
    await end(app)
    const [socket] = (await readdir(runtimeDir)).filter((name) => name.endsWith('.sock'))
    const check = (): void => {
      const connection = connect(join(runtimeDir, socket as string), () => connection.destroy())
      connection.on('error', () => {})
    }
    const timer = setInterval(check, 250)
    context.onTestFinished(() => clearInterval(timer))

    await until(() => !isAlive(processId), 15_000)
  })

  test('a stopped model process is replaced when an app connects to it', async (context) => {
    const { startApp } = await openMachine(context)
    const before = await startApp()
    const stopped = await before.ask(1).processId
    process.kill(stopped, 'SIGSTOP')

    const after = await startApp()
    const call = after.ask(3)

    expect(await call.processId).not.toBe(stopped)
    expect(await call.end).toMatchObject({ pieces: 3 })
    await until(() => !isAlive(stopped), 10_000)
  })
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
