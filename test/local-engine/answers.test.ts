import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { uncached } from '@modelmount/core/engine'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encoderModel, noiseModel } from '../support/models.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  await copyFile(modelPath, join(folder, 'copy.gguf'))
  llm = await createLlm({ models: folder, local: { reloadCooldown: 0 } })
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

const noise = { model: 'noise', maxTokens: 40 }

test('the built-in model answers a greeting and ends its answer', async () => {
  const answer = await llm.chat('Hello', { model: 'tiny', temperature: 0 })

  expect(answer.text).toBe('Hello! How can I help you?')
  expect(answer.finishReason).toBe('stop')
  expect(answer.usage).toEqual({ inputTokens: 10, reusedTokens: 0, ...uncached, outputTokens: 9 })
})

test('a model in the folder has the name of its file without the extension', async () => {
  const answer = await llm.chat('Hello', { model: 'copy', temperature: 0 })

  expect(answer.text).toBe('Hello! How can I help you?')
})

test('the system message reaches the template', async () => {
  const answer = await llm.chat(
    [
      { role: 'system', content: 'You are Ada.' },
      { role: 'user', content: 'What is your name?' },
    ],
    { model: 'tiny', temperature: 0 },
  )

  expect(answer.text).toContain('Ada')
})

test('a trailing assistant message is continued', async () => {
  const answer = await llm.chat(
    [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hello! How' },
    ],
    { model: 'tiny', temperature: 0 },
  )

  expect(answer.text).toBe(' can I help you?')
})

test('the pieces of a stream add up to the whole answer', async () => {
  const pieces: string[] = []
  for await (const piece of llm.chat('Hello', { model: 'tiny', temperature: 0, stream: true }))
    pieces.push(piece)

  expect(pieces.length).toBeGreaterThan(3)
  expect(pieces.join('')).toBe('Hello! How can I help you?')
})

test('the token limit is exact', async () => {
  const answer = await llm.chat('Hello', { ...noise, maxTokens: 7 })

  expect(answer.finishReason).toBe('length')
  expect(answer.usage.outputTokens).toBe(7)
})

test('the maximum output tokens of a caller end an answer without a token limit', async () => {
  const caller = { id: 'ann', limits: { maxOutputTokens: 7 } }
  const answer = await llm.chat('Hello', { model: 'noise', ignoreEos: true, caller })

  expect(answer.finishReason).toBe('length')
  expect(answer.usage.outputTokens).toBe(7)
  await expect(llm.chat('Hello', { model: 'noise', maxTokens: 8, caller })).rejects.toMatchObject({
    code: 'invalid_request',
  })
})

test('temperature 0 always gives the same text', async () => {
  const [first, second] = await Promise.all([1, 2].map(() => llm.chat('Hello', { ...noise, temperature: 0 })))

  expect(first?.text).toBe(second?.text)
})

test('the same seed gives the same text, and another seed gives another text', async () => {
  const ask = (seed: number) => llm.chat('Hello', { ...noise, temperature: 1, seed })
  const [first, again, other] = await Promise.all([ask(7), ask(7), ask(8)])

  expect(again.text).toBe(first.text)
  expect(other.text).not.toBe(first.text)
})

test('without a seed two answers differ', async () => {
  const [first, second] = await Promise.all([1, 2].map(() => llm.chat('Hello', { ...noise, temperature: 1 })))

  expect(first?.text).not.toBe(second?.text)
})

test('an answer ends before a stop sequence, even one that spans several tokens', async () => {
  const answer = await llm.chat('Hello', { model: 'tiny', temperature: 0, stop: ['n I he'] })

  expect(answer.text).toBe('Hello! How ca')
  expect(answer.finishReason).toBe('stop')
})

test('a bias of -100 bans a token, and ids outside the vocabulary are ignored', async () => {
  const free = await llm.chat('Hello', { ...noise, maxTokens: 1, temperature: 0 })
  const banAll: [number, number][] = Array.from({ length: 31_000 }, (_, id) => [id, -100])
  const biased = await llm.chat('Hello', {
    ...noise,
    maxTokens: 1,
    temperature: 0,
    logitBias: [...banAll, [99_999_999, 100]],
  })

  expect(biased.text).not.toBe(free.text)
})

test('penalties change a repetitive answer', async () => {
  const plain = await llm.chat('Hello', { ...noise, temperature: 0 })
  const penalised = await llm.chat('Hello', {
    ...noise,
    temperature: 0,
    repeatPenalty: 1.5,
    frequencyPenalty: 1,
  })

  expect(penalised.text).not.toBe(plain.text)
})

test('an answer of random tokens contains only whole characters', async () => {
  const { text } = await llm.chat('Hello', { ...noise, maxTokens: 600, temperature: 1, seed: 3 })

  // Some tokens are single bytes of a character. The engine has to join them.
  expect(Buffer.from(text).toString()).toBe(text)
  expect(text).toMatch(/\p{Script=Cyrillic}|\p{Script=Thai}|\p{Script=Han}/u)
})

test('an answer that fills the context ends with the finish reason context', async () => {
  const small = await createLlm({ models: folder, local: { contextSize: 128 } })
  try {
    const answer = await small.chat('Hello', { model: 'noise' })

    expect(answer.finishReason).toBe('context')
    expect(answer.usage.inputTokens + answer.usage.outputTokens).toBe(128)
  } finally {
    await small.close()
  }
})

test('a prompt longer than the context gives a context_length error with both lengths', async () => {
  const question = llm.chat('word '.repeat(5_000), noise)

  await expect(question).rejects.toMatchObject({
    code: 'context_length',
    details: { inputTokens: 5_035, contextSize: 4096 },
  })
})

test('a prompt of 10 MB is rejected as longer than the context', async () => {
  const question = llm.chat('word '.repeat(2_000_000), noise)

  await expect(question).rejects.toMatchObject({ code: 'context_length', details: { contextSize: 4096 } })
})

test.each([
  ['maxTokens', { maxTokens: Number.NaN }],
  ['maxTokens', { maxTokens: -1 }],
  ['temperature', { temperature: Number.POSITIVE_INFINITY }],
  ['topP', { topP: 2 }],
  ['seed', { seed: 1.5 }],
  ['stop', { stop: [''] }],
])('a bad %s is rejected before native code runs: %j', async (param, options) => {
  await expect(llm.chat('Hello', { ...noise, ...options })).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: expect.stringContaining(param) },
  })
})

test('a chat with an unknown model gives not_found', async () => {
  await expect(llm.chat('Hello', { model: 'nope' })).rejects.toMatchObject({ code: 'not_found' })
})

test('a file that is not a model gives an error with its name, and the next call is served', async () => {
  await writeFile(join(folder, 'broken.gguf'), 'GGUF, or so it says')

  await expect(llm.chat('Hello', { model: 'broken' })).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining('broken'),
  })
  const answer = await llm.chat('Hello', { model: 'tiny', temperature: 0 })

  expect(answer.text).toBe('Hello! How can I help you?')
})

test('a chat with an encoder is rejected with the name of the model', async () => {
  await copyFile(encoderModel, join(folder, 'encoder.gguf'))

  await expect(llm.chat('Hello', { model: 'encoder' })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('encoder'),
    details: { param: 'model' },
  })
})

test('a model in the folder overrides the built-in model of the same name', async () => {
  const own = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(noiseModel, join(own, 'tiny.gguf'))
  const mine = await createLlm({ models: own })
  try {
    const answer = await mine.chat('Hello', { model: 'tiny', temperature: 0, maxTokens: 8 })

    expect(answer.text).not.toContain('How can I help you?')
    expect(await mine.models.list()).toMatchObject([{ name: 'tiny:latest', isBuiltIn: false }])
  } finally {
    await mine.close()
    await rm(own, { recursive: true })
  }
})

test('countTokens() gives the inputTokens of the same chat', async () => {
  const { usage } = await llm.chat('Hello', { model: 'tiny', maxTokens: 1 })

  expect(await count('Hello')).toBe(usage.inputTokens)
})

test('countTokens() counts a prompt that is longer than the context', async () => {
  expect(await count('fox '.repeat(5_000))).toBeGreaterThan(5_000)
})

test('an aborted countTokens() fails with AbortError, and a concurrent one succeeds', async () => {
  const leaving = new AbortController()
  const pieces = llm.chat('Hello', { ...noise, stream: true })[Symbol.asyncIterator]()
  await pieces.next()
  const aborted = count('Hello', leaving.signal)
  const counted = count('Hello')

  leaving.abort()

  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' })
  await pieces.return?.()
  expect(await counted).toBe(10)
})

test('countTokens() for an unknown model gives not_found', async () => {
  await expect(count('Hello', undefined, 'nope')).rejects.toMatchObject({ code: 'not_found' })
})

const count = (text: string, signal = new AbortController().signal, model = 'tiny'): Promise<number> =>
  llm.countTokens(
    { model, input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] } },
    { signal },
  )
