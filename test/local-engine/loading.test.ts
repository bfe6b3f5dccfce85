/** Loading and unloading of models, their context size and their keep-alive. */
import { getEventListeners } from 'node:events'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ChatOptions, createLlm, type Llm, routesFor } from '@modelmount/core'
import type { GenerateRequest, LoadOptions } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { listen } from '../support/listen.ts'
import { isAlive } from '../support/processes.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(modelPath, join(folder, 'copy.gguf'))
  llm = await createLlm({ models: folder, local: { reloadCooldown: 0 } })
})

afterEach(() => {
  vi.useRealTimers()
  return llm.unload('tiny')
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

const hello: ChatOptions = { model: 'tiny', temperature: 0 }
const processId = (): number => llm.loaded()[0]?.processId ?? Number.NaN
const minutesLeft = (): number => {
  const [{ expiresAt } = {}] = llm.loaded()
  return expiresAt instanceof Date ? (expiresAt.getTime() - Date.now()) / 60_000 : Number.NaN
}
const call = { signal: new AbortController().signal }
const ask = (load: LoadOptions = {}) =>
  llm
    .generate({ model: 'tiny', input: { kind: 'text', prompt: ['Hello'] }, maxTokens: 2, load }, call)
    .then(async (generation) => {
      for await (const event of generation) if (event.type === 'end') return event
      return undefined
    })

test('lists of models load none, and are answered while a model loads', async () => {
  const { url, close } = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(close)
  const list = async () => {
    const lists = ['/v1/models', '/v1/models?limit=1000', '/api/tags'].map((path) => fetch(url + path))
    return (await Promise.all(lists)).map(({ status }) => status)
  }

  expect(await list()).toEqual([200, 200, 200])
  expect(llm.loaded()).toEqual([])
  let isLoaded = false
  const loading = llm.load('tiny').then(() => {
    isLoaded = true
  })
  expect(await list()).toEqual([200, 200, 200])
  expect(isLoaded).toBe(false)
  await loading
})

test('load() loads a model before the first call, and loaded() reports its size', async () => {
  await llm.load('tiny')

  const [loaded] = llm.loaded()
  expect(loaded).toMatchObject({ name: 'tiny:latest', state: 'ready', contextSize: 4096, gpuBytes: 0 })
  expect(loaded?.sizeBytes).toBeGreaterThan(5_180_192)
  expect(loaded?.sizeBytes).toBeLessThan(200_000_000)
})

test('the keep-alive is five minutes by default, and a value of load() also applies to later calls', async () => {
  await llm.load('tiny')
  expect(minutesLeft()).toBeCloseTo(5, 0)

  await llm.load('tiny', { keepAlive: 60 * 60_000 })
  expect(minutesLeft()).toBeCloseTo(60, 0)

  await llm.chat('Hello', hello)
  expect(minutesLeft()).toBeCloseTo(60, 0)

  await llm.load('tiny', { keepAlive: 'forever' })
  expect(llm.loaded()[0]?.expiresAt).toBe('never')
})

test('the model process ends when the keep-alive expires', async () => {
  await llm.load('tiny', { keepAlive: 20 })
  const id = processId()

  await expect.poll(() => llm.loaded()).toEqual([])
  await expect.poll(() => isAlive(id), { timeout: 10_000 }).toBe(false)
})

test('a keep-alive of 0 unloads the model after the answer', async () => {
  const end = await ask({ keepAlive: 0 })

  expect(end?.usage.outputTokens).toBe(2)
  await expect.poll(() => llm.loaded()).toEqual([])
})

test('unload() during an answer lets the answer finish', async () => {
  const pieces = llm
    .chat('Tell me a story.', { ...hello, maxTokens: 60, stream: true })
    [Symbol.asyncIterator]()
  await pieces.next()

  await llm.unload('tiny')
  let count = 1
  while (!(await pieces.next()).done) count++

  expect(count).toBeGreaterThan(10)
  await expect.poll(() => llm.loaded()).toEqual([])
})

test('unload() after the end event of an answer unloads the model at once', async () => {
  for (let round = 0; round < 3; round++) {
    const input = { kind: 'text', prompt: ['Hello'] } as const
    for await (const event of await llm.generate({ model: 'tiny', input, maxTokens: 2 }, call)) {
      if (event.type !== 'end') continue
      await llm.unload('tiny')

      expect(llm.loaded()).toEqual([])
    }
  }
})

test('unload() ignores a model that is not loaded, and rejects an unknown one with not_found', async () => {
  await llm.load('tiny')
  const id = processId()

  await llm.unload('copy')

  expect(processId()).toBe(id)
  await expect(llm.unload('nope')).rejects.toMatchObject({ code: 'not_found' })
  await expect(llm.load('nope')).rejects.toMatchObject({ code: 'not_found' })
})

test('unload() works by the loaded name after the file of the model was deleted', async () => {
  const file = join(folder, 'copy.gguf')
  await llm.load('copy')
  await rm(file)

  await llm.unload(llm.loaded()[0]?.name ?? '')
  await copyFile(modelPath, file)

  expect(llm.loaded()).toEqual([])
})

test('another contextSize reloads the model, and a call without contextSize keeps it', async () => {
  await ask({ contextSize: 6_000 })
  const id = processId()
  expect(llm.loaded()[0]?.contextSize).toBe(6_000)

  await ask({})
  expect(processId()).toBe(id)

  await ask({ contextSize: 512 })
  expect(processId()).not.toBe(id)
  expect(llm.loaded()[0]?.contextSize).toBe(512)
})

test('a call without contextSize does not use the small context of an earlier call', async () => {
  await ask({ contextSize: 16 })

  await ask({})

  expect(llm.loaded()[0]?.contextSize).toBe(4096)
})

test('a contextSize above the training context is reduced to the training context', async () => {
  await ask({ contextSize: 1_000_000 })

  expect(llm.loaded()[0]?.contextSize).toBe(8192)
})

test('calls with different sizes above the training context share the loaded model', async () => {
  await ask({ contextSize: 1_000_000 })
  const id = processId()

  await ask({ contextSize: 100_000 })
  await ask({ contextSize: 8192 })

  expect(processId()).toBe(id)
})

test('concurrent calls with a keep-alive of 0 share one model process', async () => {
  await expect.poll(() => llm.loaded()).toEqual([])

  const askAndLook = async (): Promise<number> => {
    const input = { kind: 'text', prompt: ['Hello'] } as const
    const answer = await llm.generate({ model: 'tiny', input, load: { keepAlive: 0 } }, call)
    const id = processId()
    for await (const _event of answer);
    return id
  }
  const ids = await Promise.all([askAndLook(), askAndLook(), askAndLook()])

  expect(new Set(ids).size).toBe(1)
  await expect.poll(() => llm.loaded()).toEqual([])
})

test('expiresAt of a model in use is one keep-alive from now', async () => {
  const pieces = await llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: ['Hello'] }, load: { keepAlive: 60 * 60_000 } },
    call,
  )

  expect(minutesLeft()).toBeCloseTo(60, 0)
  for await (const _piece of pieces);
})

test('a keep-alive of 30 days works, although it exceeds the longest timer', async () => {
  const day = 24 * 60 * 60_000
  await llm.load('tiny', { keepAlive: 'forever' })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await llm.load('tiny', { keepAlive: 30 * day })

  vi.advanceTimersByTime(29 * day)
  const before = llm.loaded()
  vi.advanceTimersByTime(2 * day)
  const after = llm.loaded()

  expect(before).toHaveLength(1)
  expect(after).toEqual([])
})

test('a signal that many calls share has no listeners afterwards', async () => {
  const { signal } = new AbortController()
  const warnings: unknown[] = []
  const warn = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', warn)
  const request: GenerateRequest = { model: 'tiny', input: { kind: 'text', prompt: ['Hello'] } }

  await Promise.all(Array.from({ length: 12 }, () => llm.countTokens(request, { signal })))
  await llm.load('tiny', { signal })
  await llm.render(request, { signal })

  process.off('warning', warn)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  expect(warnings).toEqual([])
})

test.skipIf(process.platform === 'win32')(
  'calls that lose their model process before the first event agree on the contextSize of the next process',
  async () => {
    await ask({ contextSize: 6_000 })
    process.kill(processId(), 'SIGSTOP')
    const calls = [ask(), ask({ contextSize: 6_000 }), ask()]
    await delay(300)
    process.kill(processId(), 'SIGKILL')

    await Promise.all(calls)

    expect(llm.loaded()[0]?.contextSize).toBe(6_000)
  },
)

test.each([{ contextSize: 1 }, { contextSize: 1.5 }, { keepAlive: -1 }])(
  'invalid load options are rejected: %j',
  async (load) => {
    await expect(ask(load)).rejects.toMatchObject({ code: 'invalid_request' })
  },
)

test('an aborted load() fails with AbortError, and the next call gets the model', async () => {
  const leaving = new AbortController()
  const aborted = llm.load('tiny', { signal: leaving.signal })

  leaving.abort()

  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' })
  expect((await llm.chat('Hello', hello)).text).toBe('Hello! How can I help you?')
})
