/** Cache usage in Anthropic's API, with a scripted engine and with the local engine on every mount. */
import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { type Caller, createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  kept,
  notes,
  numbers,
  readOf,
  type Site,
  usageOf,
  user,
  writtenOf,
} from '../conformance/anthropic-cache-numbers.ts'
import { ask, chat, completionOf, messageOf, wholeOf } from '../conformance/calls.ts'
import type { WhoCalls } from '../conformance/suite.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { fetchHandler } from '../support/fetch.ts'
import { type Listening, listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'

describe('cache usage of a scripted engine', () => {
  let now = 0
  let llm: Llm
  let server: Listening
  let client: Anthropic
  beforeAll(async () => {
    llm = await createLlm({
      engine: scriptedEngine('Hello there.', { now: () => now }),
      models: emptyFolder(),
    })
    server = await listen(express().use(llmRouter(llm)))
    client = new Anthropic({ baseURL: server.url, apiKey: 'anything', maxRetries: 0 })
  })

  // An hour later, the cache of the previous test has expired.
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

  test('the next call reads the prefix that a call wrote, with and without streaming', async () => {
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

  test('a stream reports cache writes at its start and its end', async () => {
    const { usage } = await client.messages.stream(asked).finalMessage()

    expect(usage).toMatchObject({
      ...written,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2 },
    })
  })

  test('`max_tokens: 0` caches a prompt for the next call', async () => {
    const ahead = await client.messages.create({ ...asked, max_tokens: 0 })
    const { data, response } = await client.messages.create(asked).withResponse()

    expect(ahead).toMatchObject({ content: [], stop_reason: 'max_tokens', usage: written })
    expect(data.usage).toMatchObject(read)
    expect(response.headers.get('x-prompt-tokens-reused')).toBe('2')
  })

  test('a conversation with automatic caching reads more with each turn', async () => {
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

  test('a fifth breakpoint makes the client throw a BadRequestError', async () => {
    const block = { type: 'text' as const, text: 'a', cache_control: { type: 'ephemeral' as const } }
    const failure = client.messages.create({
      ...asked,
      messages: [{ role: 'user', content: Array(4).fill(block) }],
    })

    await expect(failure).rejects.toBeInstanceOf(Anthropic.BadRequestError)
    await expect(failure).rejects.toThrow(
      'A maximum of 4 blocks with cache_control may be provided. Found 5.',
    )
  })
})

const mounts: Readonly<Record<string, (llm: Llm, caller: WhoCalls) => RequestListener>> = {
  "Node's own server": (llm, caller) => toNodeHandler(routesFor(), llm, { authenticate: caller }),
  Express: (llm, authenticate) => express().use(llmRouter(llm, { authenticate })),
  Koa: (llm, authenticate) => new Koa().use(koaRouter(llm, { authenticate }).routes()).callback(),
  Nest: (llm, caller) => nestHandler(llm, { authenticate: caller }),
  fetch: (llm, authenticate) => fetchHandler(llm, { authenticate }),
}

describe('cache usage of the local engine', () => {
  /** Size of a prompt cache that holds only one prompt of these tests. Each takes more than half of it. */
  const roomForOne = '2mb'

  let llm: Llm
  let small: Llm
  beforeAll(async () => {
    llm = await createLlm({ models: emptyFolder(), auth: 'host', local: { contextSize: 4096 } })
    small = await createLlm({
      models: emptyFolder(),
      auth: 'host',
      local: { contextSize: 1024, parallel: 1, promptCache: roomForOne },
    })
    await Promise.all([llm.load('tiny'), small.load('tiny')])
  }, 60_000)
  afterAll(() => Promise.all([llm.close(), small.close()]))

  describe.each(Object.entries(mounts))('mounted in %s', (_name, mount) => {
    let caller: Caller = { id: 'initial' }
    let server: Listening
    let site: Site
    beforeAll(async () => {
      server = await listen(mount(llm, () => caller))
      site = {
        url: server.url,
        callAs: (next) => {
          caller = next
        },
      }
    })
    afterAll(() => server.close())

    test.each(Object.entries(numbers))('%s', (_id, check) => check(site))

    test('a prefix shorter than a chunk is not cached', async () => {
      site.callAs({ id: randomUUID() })

      for (const _ of [1, 2]) {
        const usage = await usageOf(site, { system: [kept('Be brief.')] })

        expect([readOf(usage), writtenOf(usage)]).toEqual([0, 0])
        expect(usage.input_tokens).toBeGreaterThan(0)
      }
    })

    test('an evicted prefix is written again, not read', async () => {
      const own: Caller = { id: randomUUID() }
      const { url, close } = await listen(mount(small, () => own))
      const usages: Anthropic.Usage[] = []
      for (const name of ['a', 'b', 'a', 'a'])
        usages.push(await usageOf({ ...site, url }, { system: [kept(notes(name))] }))
      await close()

      expect(usages.map((usage) => readOf(usage) > 0)).toEqual([false, false, false, true])
      expect(usages.map((usage) => writtenOf(usage) > 0)).toEqual([true, true, true, false])
    })

    test('tokens reused without a breakpoint are only in the header, and in the usage of other APIs', async () => {
      site.callAs({ id: randomUUID() })
      const messages = [user(notes('z'))]
      const body = { model: 'tiny', max_tokens: 1, temperature: 0, messages }
      const reusedBy = (response: Response): number =>
        Number(response.headers.get('x-prompt-tokens-reused') ?? Number.NaN)

      const first = await ask(site.url, body)
      const second = await ask(site.url, body)
      const openai = await chat(site.url, body)
      const ollama = await fetch(`${site.url}/api/chat`, {
        method: 'POST',
        body: JSON.stringify({
          model: 'tiny',
          messages,
          stream: false,
          think: false,
          options: { num_predict: 1 },
        }),
      })

      expect(reusedBy(first)).toBe(0)
      expect(reusedBy(second)).toBeGreaterThan(100)
      expect((await messageOf(second)).usage).toMatchObject({
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
      })
      const { usage } = await completionOf(openai)
      expect(usage?.prompt_tokens_details?.cached_tokens).toBe(reusedBy(openai))
      expect(reusedBy(openai)).toBeGreaterThan(100)
      expect(reusedBy(ollama)).toBeGreaterThan(100)
      expect((await wholeOf(ollama)).prompt_eval_count).toBeGreaterThan(reusedBy(ollama))
    })
  })
})
