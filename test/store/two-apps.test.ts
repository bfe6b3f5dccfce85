/** Several app processes that share one models folder. */
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLlm } from '@modelmount/core'
import { afterEach, beforeEach, expect, test } from 'vitest'

const run = promisify(execFile)
const app = fileURLToPath(new URL('app.mjs', import.meta.url))
const upload = fileURLToPath(new URL('upload.mjs', import.meta.url))

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'two-apps-'))
})

afterEach(() => rm(folder, { recursive: true }))

/** Asserts that each blob matches its digest, and that each model has all its blobs. */
async function expectSound(): Promise<readonly string[]> {
  const llm = await createLlm({ models: folder })
  const models = (await llm.models.list()).filter(({ isBuiltIn }) => !isBuiltIn)
  for (const { name } of models) {
    const model = await llm.models.get(name)
    expect(model.path, name).not.toBe('')
    expect(model.defaults?.system, name).toBeDefined()
  }
  for (const file of await readdir(join(folder, 'blobs'))) {
    const digits = createHash('sha256')
      .update(await readFile(join(folder, 'blobs', file)))
      .digest('hex')
    expect(file).toBe(`sha256-${digits}`)
  }
  await llm.close()
  return models.map(({ name }) => name)
}

test('apps that create, copy and delete models concurrently lose no models of each other', async () => {
  const rounds = 6

  await Promise.all(
    ['ada', 'bob', 'eve'].map((name) => run(process.execPath, [app, folder, name, String(rounds)])),
  )

  const kept = ['ada', 'bob', 'eve'].flatMap((name) => [0, 2, 4].map((round) => `${name}-${round}:latest`))
  expect(await expectSound()).toEqual([...kept, 'shared:latest'])
}, 60_000)

test('an upload of a killed app leaves no blob, and does not block another app', async () => {
  const child = spawn(process.execPath, [upload, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))

  const left = await readdir(join(folder, 'blobs'))
  await run(process.execPath, [app, folder, 'ada', '1'])

  expect(left.length).toBeGreaterThan(0)
  expect(left.filter((file) => /^sha256-[0-9a-f]{64}$/.test(file))).toEqual([])
  const llm = await createLlm({ models: folder })
  expect((await llm.models.get('ada-0')).defaults?.system).toBe('ada 0')
  await llm.close()
}, 60_000)

test('an app that is killed with the lock blocks another app for less than 15 s', async () => {
  const child = spawn(process.execPath, [app, folder, 'bob', '1000'], { stdio: 'ignore' })
  const llm = await createLlm({ models: folder })
  await expect.poll(() => llm.models.list(), { timeout: 20_000 }).not.toHaveLength(1)
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))

  const startedAt = performance.now()
  await llm.models.copy('bob-0', 'mine')

  expect(performance.now() - startedAt).toBeLessThan(15_000)
  expect((await llm.models.get('mine')).defaults?.system).toBe('bob 0')
  await llm.close()
}, 60_000)
