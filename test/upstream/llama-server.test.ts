/** An app whose engine is llama.cpp's server, with the built-in model. */
import { createLlm, type Llm, LlmError } from '@modelmount/core'
import type { GenerateRequest, Message } from '@modelmount/core/engine'
import { upstreamEngine } from '@modelmount/core/upstream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { images } from '../support/images.ts'
import { type LlamaServerProcess, startLlamaServer } from '../support/llama-server-process.ts'
import { until } from '../support/processes.ts'

const model = 'small'
const contextSize = 2_048
let server: LlamaServerProcess
let url: string
let llm: Llm

beforeAll(async () => {
  const options = ['--ctx-size', `${2 * contextSize}`, '--alias', model, '--parallel', '2']
  server = await startLlamaServer(...options)
  url = server.url
  llm = await createLlm({ models: emptyFolder(), engine: upstreamEngine({ url }) })
}, 900_000)
afterAll(async () => {
  await llm?.close()
  server?.stop()
})

const question = 'What is a GGUF file?'
const messages: readonly Message[] = [{ role: 'user', content: [{ type: 'text', text: question }] }]
const chat: GenerateRequest = { model, input: { kind: 'chat', messages }, reasoning: 'auto' }
const weather = {
  ...{ name: 'get_weather', description: 'Returns the weather of a city.' },
  parameters: {
    ...{ type: 'object', properties: { city: { type: 'string', maxLength: 12 } }, required: ['city'] },
    additionalProperties: false,
  },
} as const
const isIdle = async (): Promise<boolean> => {
  const slots = (await (await fetch(`${url}/slots`)).json()) as readonly { readonly is_processing: boolean }[]
  return slots.every((slot) => !slot.is_processing)
}

test('the model has the name and the context size of the server', async () => {
  expect(await llm.models.get(model)).toMatchObject({ name: model, details: { contextSize } })
})

// The server closes each connection after a stream without saying so.
test('no request is lost on connections that the server has closed', async () => {
  for (let count = 0; count < 100; count++) {
    const { usage } = await llm.chat(question, { model, temperature: 0, maxTokens: 4 })
    expect(usage.outputTokens).toBe(4)
  }
})

test('usage is what the server counts, with the cached part of the prompt', async () => {
  await llm.chat(question, { model, temperature: 0, maxTokens: 4 })
  const { usage } = await llm.chat(question, { model, temperature: 0, maxTokens: 4 })

  expect(usage.inputTokens).toBe(await llm.countTokens(chat))
  expect(usage.cacheReadTokens).toBeGreaterThan(usage.inputTokens / 2)
  expect(usage).not.toHaveProperty('isEstimated')
})

test('an answer matches its JSON Schema, and its reasoning is separate', async () => {
  const { object } = await llm.chat('A city.', {
    ...{ model, maxTokens: 200, temperature: 0 },
    schema: z.object({ city: z.string().max(8) }),
  })

  expect(object).toEqual({ city: expect.any(String) })
})

test('an answer matches a grammar', async () => {
  const answer = await collect(
    await llm.generate({
      ...chat,
      input: { kind: 'text', prompt: ['Answer:'], template: false },
      ...{ format: { type: 'grammar', source: 'root ::= "yes" | "no"' }, maxTokens: 8 },
    }),
  )

  expect(answer.text).toMatch(/^(yes|no)$/)
})

test('the model calls a tool', async () => {
  const answer = await collect(
    await llm.generate({
      ...chat,
      input: {
        kind: 'chat',
        messages: [{ role: 'user', content: [{ type: 'text', text: 'What is the weather in Paris?' }] }],
        ...{ tools: [weather], toolChoice: { mode: 'required' } },
      },
      ...{ maxTokens: 400, sampling: { temperature: 0 } },
    }),
  )
  const [call] = answer.toolCalls ?? []

  expect(answer.finishReason).toBe('tool-calls')
  expect(call?.name).toBe('get_weather')
  expect(JSON.parse(call?.arguments ?? '')).toEqual({ city: expect.any(String) })
})

test('log probabilities have the ids of the server', async () => {
  const { logprobs } = await collect(
    await llm.generate({
      ...{ model, input: { kind: 'text', prompt: ['GGUF is'], template: false } },
      ...{ maxTokens: 4, logprobs: 2, sampling: { temperature: 0 } },
    }),
  )
  const ids = logprobs?.map(({ id }) => id) ?? []

  expect(ids).toHaveLength(4)
  expect(await llm.detokenize({ model, tokens: ids })).toBe(logprobs?.map(({ text }) => text).join(''))
})

test('a text becomes tokens and a text again', async () => {
  const tokens = await llm.tokenize({ model, text: 'Hello, world' })

  expect(await llm.detokenize({ model, tokens })).toBe('Hello, world')
})

test('a client that leaves ends the call in the server', async () => {
  const leaving = new AbortController()
  const events = llm
    .chat('Tell me a long story.', { model, stream: true, ignoreEos: true, signal: leaving.signal })
    [Symbol.asyncIterator]()
  await events.next()

  leaving.abort()

  let isOver = false
  const watch = setInterval(async () => {
    isOver = await isIdle()
  }, 50)
  await until(() => isOver, 10_000)
  clearInterval(watch)
})

test('64 streams at once are complete', async () => {
  const ask = () => llm.chat(question, { model, temperature: 0, maxTokens: 20, ignoreEos: true })
  const answers = await Promise.all(Array.from({ length: 64 }, ask))

  expect(answers.map(({ usage }) => usage.outputTokens)).toEqual(new Array(64).fill(20))
})

test('a prompt that is too long says how long both are', async () => {
  const error = await llm.chat('word '.repeat(8_000), { model }).catch((cause: unknown) => cause)

  expect(LlmError.is(error) && error.details).toMatchObject({ contextSize, inputTokens: expect.any(Number) })
})

test('what the server lacks is rejected', async () => {
  await expect(llm.chat(question, { model, minTokens: 3 })).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: 'sampling.minTokens' },
  })
  await expect(llm.embed({ model, inputs: ['a'] })).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a server without a projector says that its model sees no images', async () => {
  const image = { type: 'image', mediaType: '', data: images.png } as const
  const input = { kind: 'chat', messages: [{ role: 'user', content: [image] }] } as const

  await expect(llm.generate({ model, input })).rejects.toMatchObject({
    ...{ code: 'invalid_request', message: 'An image is not supported by this model.' },
  })
})
