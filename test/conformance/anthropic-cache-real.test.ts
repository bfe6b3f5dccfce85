/** What usage says of the prompt cache when a model keeps it: the built-in one, by every way to mount the routes. */
import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import type Anthropic from '@anthropic-ai/sdk'
import { type Caller, createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { fetchHandler } from '../support/fetch.ts'
import { type Listening, listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'
import {
  kept,
  notes,
  numbers,
  readOf,
  type Site,
  usageOf,
  user,
  writtenOf,
} from './anthropic-cache-numbers.ts'
import { ask, chat, completionOf, messageOf, wholeOf } from './calls.ts'
import type { WhoCalls } from './suite.ts'

const mounts: Readonly<Record<string, (llm: Llm, caller: WhoCalls) => RequestListener>> = {
  "Node's own server": (llm, caller) => toNodeHandler(routesFor(), llm, { authenticate: caller }),
  Express: (llm, authenticate) => express().use(llmRouter(llm, { authenticate })),
  Koa: (llm, authenticate) => new Koa().use(koaRouter(llm, { authenticate }).routes()).callback(),
  Nest: (llm, caller) => nestHandler(llm, { authenticate: caller }),
  fetch: fetchHandler,
}

/** What is kept of one prompt of these tests takes more than half of it. */
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
  let caller: Caller = { id: 'nobody' }
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

  test('a prefix that is shorter than a chunk is not kept', async () => {
    site.callAs({ id: randomUUID() })

    for (const _ of [1, 2]) {
      const usage = await usageOf(site, { system: [kept('Be brief.')] })

      expect([readOf(usage), writtenOf(usage)]).toEqual([0, 0])
      expect(usage.input_tokens).toBeGreaterThan(0)
    }
  })

  test('what had to give way to another prompt is written again, and never read', async () => {
    const own: Caller = { id: randomUUID() }
    const { url, close } = await listen(mount(small, () => own))
    const usages: Anthropic.Usage[] = []
    for (const name of ['a', 'b', 'a', 'a'])
      usages.push(await usageOf({ ...site, url }, { system: [kept(notes(name))] }))
    await close()

    expect(usages.map((usage) => readOf(usage) > 0)).toEqual([false, false, false, true])
    expect(usages.map((usage) => writtenOf(usage) > 0)).toEqual([true, true, true, false])
  })

  test('what was reused without a breakpoint is in the header alone, and in the usage of other APIs', async () => {
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
