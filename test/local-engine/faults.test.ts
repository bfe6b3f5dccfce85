import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createLlm, type Llm, LlmError } from '@modelmount/core'
import { readEvents } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { noiseModel } from '../support/models.ts'
import { isAlive, until } from '../support/processes.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
})

afterAll(() => rm(folder, { recursive: true }))

/** Differs in each test, so that no test joins the model process of an earlier one. */
let contextSize = 2_048

beforeEach(async () => {
  llm = await createLlm({ models: folder, local: { contextSize: ++contextSize } })
})

afterEach(() => llm.close())

const short = { model: 'noise', maxTokens: 5 }
const processId = (): number => llm.loaded()[0]?.processId ?? Number.NaN

test('a kill of the model process during a stream gives an error frame, and the app and the next chat work', async () => {
  const app = express()
    .use(llmRouter(llm))
    .get('/api/users', (_req, res) => void res.json(['Ada']))
  const { url, close } = await listen(app)
  const body = { model: 'noise', messages: [{ role: 'user', content: 'Hello' }] }
  const ask = (stream: boolean, max_tokens: number) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...body, stream, max_tokens }),
    })
  try {
    const frames: string[] = []
    const { body: stream } = await ask(true, 4_000)
    for await (const { data } of readEvents(stream as ReadableStream<Uint8Array>)) {
      frames.push(data)
      if (frames.length === 20) process.kill(processId(), 'SIGKILL')
    }
    const users = await fetch(`${url}/api/users`)
    const next = await ask(false, 5)

    expect(frames.length).toBeLessThan(3_000)
    expect(JSON.parse(frames.at(-1) ?? '')).toEqual({
      error: { message: expect.stringContaining('SIGKILL'), type: 'server_error', param: null, code: null },
    })
    expect(await users.json()).toEqual(['Ada'])
    expect(next.status).toBe(200)
  } finally {
    await close()
  }
})

test('a kill of the model process while it loads gives an upstream error, and the next call is served', async () => {
  const first = llm.chat('Hello', short)
  const failed = expect(first).rejects.toMatchObject({ code: 'upstream' })
  await until(() => Number.isInteger(processId()), 5_000)
  process.kill(processId(), 'SIGKILL')
  await failed

  const next = await llm.chat('Hello', short)

  expect(next.usage.outputTokens).toBe(5)
})

test('SIGINT, as from Ctrl-C in a terminal, does not end the model process', async () => {
  await llm.chat('Hello', short)
  const before = processId()
  process.kill(before, 'SIGINT')

  await llm.chat('Hello', short)

  expect(processId()).toBe(before)
})

test('a stream that the app does not read does not block other calls', async () => {
  const unread = llm.chat('Hello', { model: 'noise', maxTokens: 2_000, stream: true })[Symbol.asyncIterator]()
  await unread.next()

  const other = await llm.chat('Hello', short)

  expect(other.usage.outputTokens).toBe(5)
  expect((await unread.next()).done).toBe(false)
})

test('the event loop of the app stays free while a model loads and generates', async () => {
  const loopDelay = monitorEventLoopDelay({ resolution: 1 })
  loopDelay.enable()

  await llm.chat('word '.repeat(2_000), { model: 'noise', maxTokens: 1_000 })
  loopDelay.disable()

  expect(loopDelay.percentile(99) / 1e6).toBeLessThan(20)
})

test('close() ends a running stream with an LlmError, and then the model process', async () => {
  const stream = llm.chat('Hello', { model: 'noise', stream: true })[Symbol.asyncIterator]()
  await stream.next()
  const running = processId()

  await llm.close()

  const rest = async () => {
    while (!(await stream.next()).done);
  }
  await expect(rest()).rejects.toBeInstanceOf(LlmError)
  await until(() => !isAlive(running), 15_000)
})

test('of 530 concurrent calls, 8 run, 512 wait and 10 are rejected as overloaded', async () => {
  const calls = Array.from({ length: 530 }, () => llm.chat('Hello', { model: 'noise', maxTokens: 1 }))

  const outcomes = await Promise.allSettled(calls)

  const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  expect(refused).toHaveLength(10)
  for (const error of refused)
    expect(error).toMatchObject({ code: 'overloaded', details: { retryAfterMs: expect.any(Number) } })
}, 60_000)
