/** The model process of an app that ends without `close()` exits within 15 s. The tests run concurrently. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import { isAlive, until } from '../support/processes.ts'

const file = fileURLToPath(new URL('./app.mjs', import.meta.url))
let models: string

beforeAll(async () => {
  models = await mkdtemp(join(tmpdir(), 'models-'))
  await symlink(noiseModel, join(models, 'noise.gguf'))
})

afterAll(() => rm(models, { recursive: true }))

/** Starts an app with a separate runtime folder, so that no other app uses its model process. */
async function startApp(mode: 'once' | 'forever') {
  const runtimeDir = await mkdtemp(join(tmpdir(), 'run-'))
  const child = spawn(process.execPath, [file, models, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, XDG_RUNTIME_DIR: runtimeDir },
  })
  const exited = once(child, 'exit')
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const modelProcess = JSON.parse(line).processId as number
  return {
    exited,
    /** Sends a signal to the whole process group, as a terminal does. */
    signal: (signal: NodeJS.Signals) => process.kill(-(child.pid as number), signal),
    async modelProcessGone(): Promise<void> {
      await until(() => !isAlive(modelProcess), 15_000)
      await rm(runtimeDir, { recursive: true, maxRetries: 10, retryDelay: 20 })
    },
  }
}

describe.concurrent('the model process of an app that does not call close()', () => {
  test('exits when the app ends normally', async ({ expect }) => {
    const app = await startApp('once')

    const [code] = await app.exited

    expect(code).toBe(0)
    await app.modelProcessGone()
  })

  // Causes: kill -9, Ctrl-C, watchers such as tsx and nodemon (SIGTERM, SIGUSR2), a closed terminal (SIGHUP).
  test.each(['SIGKILL', 'SIGINT', 'SIGTERM', 'SIGUSR2', 'SIGHUP'] as const)(
    'exits when the app receives %s',
    async (signal) => {
      const app = await startApp('forever')

      app.signal(signal)
      await app.exited

      await app.modelProcessGone()
    },
  )
})
