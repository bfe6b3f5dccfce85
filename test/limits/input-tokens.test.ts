/** Limits of input and of output tokens, with the real engine and Anthropic's client. */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type KeySettings, type Llm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Listening, listen } from '../support/listen.ts'

let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({ auth: 'keys', database: ':memory:' })
  server = await listen(express().use(llmRouter(llm)))
  await llm.load('tiny')
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

/** Each has another prompt, so that no test reads what another one has cached. */
async function connect(limits: KeySettings['limits']) {
  const { key, secret } = await llm.keys.create({ name: 'app', limits })
  const { id } = key
  const client = new Anthropic({ baseURL: server.url, apiKey: secret, maxRetries: 0 })
  const notes = `${id} ${'All notes of the meeting are here. '.repeat(100)}`
  const ask = (cache_control: Anthropic.CacheControlEphemeral | null, question = 'Hi') =>
    client.messages.create({
      model: 'tiny',
      max_tokens: 2,
      system: [{ type: 'text', text: notes, cache_control }],
      messages: [{ role: 'user', content: question }],
    })
  const { input_tokens } = await client.messages.countTokens({
    ...{ model: 'tiny', system: notes },
    messages: [{ role: 'user', content: 'Hi' }],
  })
  return { client, ask, id, promptTokens: input_tokens }
}

/** Refills little during a test, and is too small for two whole prompts. */
const forOnePrompt = async () => {
  const { promptTokens } = await connect({})
  return { inputTokensPerMinute: Math.round(promptTokens * 1.4) }
}

test('a prompt that is not cached takes all its tokens, and the next one is a 429 that names the limit', async () => {
  const limits = await forOnePrompt()
  const { ask } = await connect(limits)

  expect((await ask(null)).usage.cache_read_input_tokens).toBe(0)

  const error = await ask(null).catch((cause: unknown) => cause)
  if (!(error instanceof Anthropic.RateLimitError)) throw error
  const { message, headers } = error
  expect(message).toContain(`the limit of ${limits.inputTokensPerMinute} input tokens per minute`)
  expect(Number(headers?.get('retry-after'))).toBeGreaterThan(0)
  expect(headers?.get('anthropic-ratelimit-input-tokens-limit')).toBe(`${limits.inputTokensPerMinute}`)
})

test('a cached prompt is admitted again and again, since its cached tokens do not count', async () => {
  const { ask, id, promptTokens } = await connect(await forOnePrompt())
  const remaining = async () => (await llm.limits.of(await llm.keys.get(id)))[0]?.remaining ?? 0

  const first = await ask({ type: 'ephemeral' })
  expect(first.usage.cache_creation_input_tokens).toBeGreaterThan(promptTokens / 2)
  const afterFirst = await remaining()
  for (const question of ['Hi', 'Hello', 'Well?']) {
    const { usage } = await ask({ type: 'ephemeral' }, question)
    expect(usage.cache_read_input_tokens).toBe(first.usage.cache_creation_input_tokens)
  }
  expect(await remaining()).toBeGreaterThan(afterFirst - promptTokens / 2)
  await expect(ask(null)).rejects.toThrow('input tokens per minute')
})

test('output tokens have their own limit, which long prompts do not use up', async () => {
  const { ask, client } = await connect({ outputTokensPerMinute: 4 })

  await ask(null)
  await ask(null)

  await expect(ask(null)).rejects.toThrow('the limit of 4 output tokens per minute')
  const { response } = await client.models.list().withResponse()
  expect(response.status).toBe(200)
})
