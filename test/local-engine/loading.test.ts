/** What is loaded, with which context, and for how long. */
import { getEventListeners } from 'node:events'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ChatOptions, createLlm, type Llm } from '@modelmount/core'
import type { GenerateRequest, LoadOptions } from '@modelmount/core/engine'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { isAlive } from '../support/processes.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(modelPath, join(folder, 'copy.gguf'))
  llm = await createLlm({ models: folder })
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

test('a model is loaded before it is asked, and says what it takes', async () => {
  await llm.load('tiny')

  const [loaded] = llm.loaded()
  expect(loaded).toMatchObject({ name: 'tiny:latest', state: 'ready', contextSize: 4096, gpuBytes: 0 })
  expect(loaded?.sizeBytes).toBeGreaterThan(5_180_192)
  expect(loaded?.sizeBytes).toBeLessThan(200_000_000)
})

test('it stays for five minutes, unless a call says otherwise, and that holds', async () => {
  await llm.load('tiny')
  expect(minutesLeft()).toBeCloseTo(5, 0)

  await llm.load('tiny', { keepAlive: 60 * 60_000 })
  expect(minutesLeft()).toBeCloseTo(60, 0)

  await llm.chat('Hello', hello)
  expect(minutesLeft()).toBeCloseTo(60, 0)

  await llm.load('tiny', { keepAlive: 'forever' })
  expect(llm.loaded()[0]?.expiresAt).toBe('never')
})

test('when its time is over, its process ends', async () => {
  await llm.load('tiny', { keepAlive: 20 })
  const id = processId()

  await expect.poll(() => llm.loaded()).toEqual([])
  await expect.poll(() => isAlive(id), { timeout: 10_000 }).toBe(false)
})

test('a time of 0 ends it behind the answer', async () => {
  const end = await ask({ keepAlive: 0 })

  expect(end?.usage.outputTokens).toBe(2)
  await expect.poll(() => llm.loaded()).toEqual([])
})

test('a model that is let go while it answers, answers to the end', async () => {
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

test('a model that is let go behind the end of its answer is gone then', async () => {
  for (let round = 0; round < 3; round++) {
    const input = { kind: 'text', prompt: ['Hello'] } as const
    for await (const event of await llm.generate({ model: 'tiny', input, maxTokens: 2 }, call)) {
      if (event.type !== 'end') continue
      await llm.unload('tiny')

      expect(llm.loaded()).toEqual([])
    }
  }
})

test('letting go of a model that is not loaded is nothing, and of an unknown one not_found', async () => {
  await llm.load('tiny')
  const id = processId()

  await llm.unload('copy')

  expect(processId()).toBe(id)
  await expect(llm.unload('nope')).rejects.toMatchObject({ code: 'not_found' })
  await expect(llm.load('nope')).rejects.toMatchObject({ code: 'not_found' })
})

test('a model whose file is gone is let go by the name that it is loaded under', async () => {
  const file = join(folder, 'copy.gguf')
  await llm.load('copy')
  await rm(file)

  await llm.unload(llm.loaded()[0]?.name ?? '')
  await copyFile(modelPath, file)

  expect(llm.loaded()).toEqual([])
})

test('a model is loaded anew for another context, and kept where nobody says which', async () => {
  await ask({ contextSize: 6_000 })
  const id = processId()
  expect(llm.loaded()[0]?.contextSize).toBe(6_000)

  await ask({})
  expect(processId()).toBe(id)

  await ask({ contextSize: 512 })
  expect(processId()).not.toBe(id)
  expect(llm.loaded()[0]?.contextSize).toBe(512)
})

test('a small context that one caller wants is not what the others get', async () => {
  await ask({ contextSize: 16 })

  await ask({})

  expect(llm.loaded()[0]?.contextSize).toBe(4096)
})

test('a context that is larger than the model was trained for is cut to that', async () => {
  await ask({ contextSize: 1_000_000 })

  expect(llm.loaded()[0]?.contextSize).toBe(8192)
})

test('callers who want more than there is, each another number, share the model', async () => {
  await ask({ contextSize: 1_000_000 })
  const id = processId()

  await ask({ contextSize: 100_000 })
  await ask({ contextSize: 8192 })

  expect(processId()).toBe(id)
})

test('calls that wait, each with a time of 0, share the model', async () => {
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

test('while somebody uses it, its time begins anew at each moment', async () => {
  const pieces = await llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: ['Hello'] }, load: { keepAlive: 60 * 60_000 } },
    call,
  )

  expect(minutesLeft()).toBeCloseTo(60, 0)
  for await (const _piece of pieces);
})

test('a month is a month, though no timer is as long', async () => {
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

test('a signal that many calls share is left as it was', async () => {
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
  'calls that lose their process before it said anything agree about the next',
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
  'a load that makes no sense is refused: %j',
  async (load) => {
    await expect(ask(load)).rejects.toMatchObject({ code: 'invalid_request' })
  },
)

test('who leaves while a model is loaded gets an AbortError, and the next one the model', async () => {
  const leaving = new AbortController()
  const left = llm.load('tiny', { signal: leaving.signal })

  leaving.abort()

  await expect(left).rejects.toMatchObject({ name: 'AbortError' })
  expect((await llm.chat('Hello', hello)).text).toBe('Hello! How can I help you?')
})
