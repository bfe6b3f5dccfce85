/** `/readyz` of the local engine: what breaks is told within 2 s, and what works again is ready again. */
import { copyFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { healthRouter } from '@modelmount/express'
import express from 'express'
import { describe, expect, onTestFinished, type TestContext, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { lockDatabase } from '../support/lock-database.ts'
import { rankingModel } from '../support/made-models.ts'
import { encoderModel, noiseModel } from '../support/models.ts'
import { hasPostgres, startPostgres } from '../support/postgres.ts'
import { noOrphan } from '../support/processes.ts'

const toldWithin = { timeout: 2_000, interval: 50 }
const recoveredWithin = { timeout: 10_000, interval: 100 }

async function start(
  options: LlmOptions = {},
  context: Pick<TestContext, 'onTestFinished'> = { onTestFinished },
) {
  const models = emptyFolder()
  const file = join(models, 'noise.gguf')
  await copyFile(noiseModel, file)
  const llm = await createLlm({ models, ...options })
  context.onTestFinished(() => llm.close())
  const { url } = await listen(express().use(healthRouter(llm)))
  const status = async (query = ''): Promise<number> => (await fetch(`${url}/readyz${query}`)).status
  return { llm, file, status }
}

const ofNoise = '?model=noise'
const once = { model: 'noise', maxTokens: 1 } as const
const processIdOf = (llm: Llm): number => llm.loaded()[0]?.processId as number

test('a model that is not loaded is ready, and is not loaded for the answer', async () => {
  const { llm, status } = await start()

  expect(await status(ofNoise)).toBe(200)
  expect(llm.loaded()).toEqual([])
})

test('a loaded model decodes a token, which neither extends its keep-alive nor counts as a call', async () => {
  const { llm, status } = await start({ auth: 'keys', database: ':memory:' })
  await llm.load('noise', { keepAlive: 60_000 })
  const withoutActivity = () => llm.loaded().map(({ activity: _, ...model }) => model)
  const before = withoutActivity()

  expect(await status(ofNoise)).toBe(200)

  expect(withoutActivity()).toEqual(before)
  expect(await llm.usage.calls({})).toEqual([])
})

test('an embedding model and a reranking model are ready when they have evaluated a text', async () => {
  const models = emptyFolder()
  await copyFile(encoderModel, join(models, 'encoder.gguf'))
  await writeFile(join(models, 'ranker.gguf'), rankingModel())
  const llm = await createLlm({ models })
  onTestFinished(() => llm.close())
  await llm.load('encoder')
  await llm.load('ranker')

  expect(await llm.checkHealth({ models: ['encoder', 'ranker'] })).toMatchObject({
    status: 'ok',
    checks: { 'model encoder': { status: 'ok' }, 'model ranker': { status: 'ok' } },
  })
})

// Concurrent, because each waits for seconds. Each has model processes of its own.
describe.skipIf(process.platform === 'win32')('a model process', { concurrent: true }, () => {
  test('that is killed makes the model unavailable until it may be loaded again', async (context) => {
    const { expect } = context
    const { llm, status } = await start({}, context)
    await llm.chat('Hello', once)
    expect(await status(ofNoise)).toBe(200)

    process.kill(processIdOf(llm), 'SIGKILL')

    await expect.poll(() => status(ofNoise), toldWithin).toBe(503)
    await expect.poll(() => status(ofNoise), recoveredWithin).toBe(200)
    await llm.chat('Hello', once)
    expect(await status(ofNoise)).toBe(200)
  })

  test('that hangs makes the model unavailable until it is replaced', async (context) => {
    const { expect } = context
    const { llm, status } = await start({}, context)
    await llm.chat('Hello', once)
    expect(await status(ofNoise)).toBe(200)
    const stopped = processIdOf(llm)

    process.kill(stopped, 'SIGSTOP')

    await expect.poll(() => status(ofNoise), toldWithin).toBe(503)
    const { checks } = await llm.checkHealth({ models: ['noise'] })
    expect(checks['model noise']?.reason).toMatch(/does not answer/)
    await expect.poll(() => status(ofNoise), { timeout: 20_000, interval: 200 }).toBe(200)
    await llm.chat('Hello', once)
    expect(processIdOf(llm)).not.toBe(stopped)
    await noOrphan([stopped])
  })

  test('that hangs makes an app unready whose only model it has', async (context) => {
    const { expect } = context
    const { llm, status } = await start({ models: noiseModel }, context)
    const [only] = (await llm.models.list()).filter(({ isBuiltIn }) => !isBuiltIn)
    await llm.load(only?.name as string)
    await llm.load('tiny')
    const stopped = llm.loaded().map(({ processId }) => processId as number)

    for (const processId of stopped) process.kill(processId, 'SIGSTOP')

    await expect.poll(() => status(), toldWithin).toBe(503)
    await expect.poll(() => status(), { timeout: 20_000, interval: 200 }).toBe(200)
    await noOrphan(stopped)
  })
})

test('a full queue makes the app unready until it has room', async () => {
  const { llm, status } = await start({ local: { parallel: 1 }, maxAdmitted: 1, maxQueued: 1 })
  const leave = new AbortController()
  const calls = [1, 2].map(() => llm.chat('Hello', { model: 'noise', signal: leave.signal }).catch(() => {}))

  await expect.poll(() => status(), toldWithin).toBe(503)
  const { checks } = await llm.checkHealth()
  expect(checks.queue?.reason).toBe('The queue is full: noise:latest.')
  leave.abort()
  await Promise.all(calls)

  await expect.poll(() => status(), toldWithin).toBe(200)
})

test('a model whose file is gone is unavailable until the file is back', async () => {
  const { file, status } = await start()
  expect(await status(ofNoise)).toBe(200)

  await rm(file)

  await expect.poll(() => status(ofNoise), toldWithin).toBe(503)
  expect(await status()).toBe(200)
  await copyFile(noiseModel, file)
  await expect.poll(() => status(ofNoise), toldWithin).toBe(200)
})

test('a locked SQLite file makes the app unready until it is unlocked', async () => {
  const database = join(emptyFolder(), 'data.db')
  const { status } = await start({ database })
  expect(await status()).toBe(200)

  const unlock = await lockDatabase(database)

  await expect.poll(() => status(), toldWithin).toBe(503)
  unlock()
  await expect.poll(() => status(), recoveredWithin).toBe(200)
})

test.runIf(hasPostgres)('a stopped PostgreSQL makes the app unready until it runs again', async () => {
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const { status, llm } = await start({ database: postgres.url, logger: { warn: () => {}, error: () => {} } })
  expect(await status()).toBe(200)

  await postgres.halt()

  await expect.poll(() => status(), toldWithin).toBe(503)
  await postgres.resume()
  await expect.poll(() => status(), recoveredWithin).toBe(200)
  await llm.close()
})
