/** What Anthropic's own client reads of the prompt cache, by an engine that keeps one without a model. */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

let now = 0
const llm = await createLlm({
  engine: scriptedEngine('Hello there.', { now: () => now }),
  models: emptyFolder(),
})
const server = await listen(express().use(llmRouter(llm)))
const client = new Anthropic({ baseURL: server.url, apiKey: 'anything', maxRetries: 0 })

// What the test before has kept is gone.
beforeEach(() => {
  now += 3_600_000
})
afterAll(async () => {
  await server.close()
  await llm.close()
})

const asked: Anthropic.MessageCreateParamsNonStreaming = {
  model: 'tiny',
  max_tokens: 50,
  tools: [{ name: 'now', input_schema: { type: 'object' } }],
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
  messages: [{ role: 'user', content: 'Hello' }],
}
const nothing = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
const written = { ...nothing, input_tokens: 1, cache_creation_input_tokens: 2 }
const read = { ...nothing, input_tokens: 1, cache_read_input_tokens: 2 }

test('what was written by one call is read by the next, whole and streamed', async () => {
  const first = await client.messages.create(asked)
  const second = await client.messages.create(asked)
  const streamed = await client.messages.stream(asked).finalMessage()

  expect(first.usage).toMatchObject({
    ...written,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2 },
  })
  expect([second.usage, streamed.usage]).toMatchObject([read, read])
  expect(await client.messages.countTokens({ ...asked })).toEqual({ input_tokens: 3 })
})

test('a stream that writes says so from its beginning to its end', async () => {
  const { usage } = await client.messages.stream(asked).finalMessage()

  expect(usage).toMatchObject({
    ...written,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2 },
  })
})

test('a prompt is read ahead of time', async () => {
  const ahead = await client.messages.create({ ...asked, max_tokens: 0 })
  const { data, response } = await client.messages.create(asked).withResponse()

  expect(ahead).toMatchObject({ content: [], stop_reason: 'max_tokens', usage: written })
  expect(data.usage).toMatchObject(read)
  expect(response.headers.get('x-prompt-tokens-reused')).toBe('2')
})

test('a conversation that is kept up to its end by itself reads more with each turn', async () => {
  const messages: Anthropic.MessageParam[] = []
  const reads: unknown[] = []
  for (const question of ['a', 'b', 'c']) {
    messages.push({ role: 'user', content: question })
    const { content, usage } = await client.messages.create({
      ...asked,
      messages,
      cache_control: { type: 'ephemeral' },
    })
    messages.push({ role: 'assistant', content })
    reads.push([usage.cache_read_input_tokens, usage.cache_creation_input_tokens])
  }

  expect(reads).toEqual([
    [0, 3],
    [3, 2],
    [5, 2],
  ])
})

test('a breakpoint too many is a BadRequestError', async () => {
  const block = { type: 'text' as const, text: 'a', cache_control: { type: 'ephemeral' as const } }
  const failure = client.messages.create({
    ...asked,
    messages: [{ role: 'user', content: Array(4).fill(block) }],
  })

  await expect(failure).rejects.toBeInstanceOf(Anthropic.BadRequestError)
  await expect(failure).rejects.toThrow('A maximum of 4 blocks with cache_control may be provided. Found 5.')
})
