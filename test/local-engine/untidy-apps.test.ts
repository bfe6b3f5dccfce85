/** Apps that do not tidy up: their model process is gone seconds later. Side by side, as these tests mostly wait. */
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

/** With a model process of its own, that no other app keeps. */
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
    /** To the whole group, as a terminal does it. */
    signal: (signal: NodeJS.Signals) => process.kill(-(child.pid as number), signal),
    async modelProcessGone(): Promise<void> {
      await until(() => !isAlive(modelProcess), 15_000)
      await rm(runtimeDir, { recursive: true, maxRetries: 10, retryDelay: 20 })
    },
  }
}

describe.concurrent('an app that does not tidy up', () => {
  test('takes its model process along when a script just ends', async ({ expect }) => {
    const app = await startApp('once')

    const [code] = await app.exited

    expect(code).toBe(0)
    await app.modelProcessGone()
  })

  // kill -9; Ctrl-C; a watcher that restarts the app, such as nodemon or tsx; a closed terminal.
  test.each(['SIGKILL', 'SIGINT', 'SIGTERM', 'SIGUSR2', 'SIGHUP'] as const)(
    'takes it along at %s',
    async (signal) => {
      const app = await startApp('forever')

      app.signal(signal)
      await app.exited

      await app.modelProcessGone()
    },
  )
})
