/**
 * Callers that the host app identifies (`auth: 'host'`). They have the same model lists and limits as callers
 * with API keys, over HTTP and in process.
 */
import { type Caller, createLlm, type LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const { signal } = new AbortController()
const text = { model: 'tiny', input: { kind: 'text', prompt: ['Hello'] } } as const

async function hosted(options: LlmOptions = {}) {
  const engine = scriptedEngine('Hello there.')
  const llm = await createLlm({ engine, models: emptyFolder(), auth: 'host', ...options })
  onTestFinished(() => llm.close())
  return { llm, engine }
}

async function ask(llm: Awaited<ReturnType<typeof hosted>>['llm'], caller: unknown) {
  const { url, close } = await listen(express().use(llmRouter(llm, { authenticate: () => caller as Caller })))
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }),
  })
  const answer = { status: response.status, body: await response.text() }
  await close()
  return answer
}

test('the ledger stores a numeric caller id as a string', async () => {
  const { llm } = await hosted({ database: ':memory:' })

  expect(await ask(llm, { id: 42 })).toMatchObject({ status: 200 })

  expect(await llm.usage.report({ by: 'key' })).toMatchObject([{ group: '42', calls: 1 }])
})

test('an invalid caller causes an error that names the field, and no call reaches the engine', async () => {
  const { llm, engine } = await hosted()

  for (const [caller, field] of [
    [{ name: 'ann' }, 'caller.id'],
    [{ id: 'ann', limits: { rpm: 1 } }, 'caller.limits'],
    [{ id: 'ann', models: 'tiny' }, 'caller.models'],
    [{ id: 'ann', spendingLimit: { usd: 5, period: 'day' } }, '`database`'],
  ] as const) {
    const { status, body } = await ask(llm, caller)
    expect(status).toBe(500)
    expect(JSON.parse(body)).toMatchObject({ error: { message: expect.stringContaining(field) } })
    const inProcess = llm.generate(text, { signal, caller: caller as unknown as Caller })
    await expect(inProcess).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining(field),
    })
  }
  expect(engine.requests).toEqual([])
})

test("calls in process may use only the caller's models", async () => {
  const { llm, engine } = await hosted()
  const refused = { code: 'permission', message: expect.stringContaining('may not use the model "tiny') }
  const caller: Caller = { id: 'ann', models: ['other'] }

  for (const attempt of [
    async () => llm.generate(text, { signal, caller }),
    async () => llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller }),
    async () => llm.embed({ inputs: ['Hello'] }, { caller }),
    async () => llm.rerank({ model: 'tiny', query: 'a', documents: ['b'] }, { caller }),
    async () => llm.tokenize({ model: 'tiny', text: 'Hello' } as never, { caller }),
    async () => llm.detokenize({ model: 'tiny', tokens: [1] }, { caller }),
    async () => llm.chat('Hello', { caller }),
    async () => {
      for await (const _text of llm.chat('Hello', { caller, stream: true }));
    },
  ])
    await expect(attempt(), String(attempt)).rejects.toMatchObject(refused)
  expect(engine.requests).toEqual([])
  expect(await llm.chat('Hello', { caller: { id: 'ann', models: ['tiny'] } })).toMatchObject({
    text: 'Hello there.',
  })
})

test('without the scope models, a caller chooses neither context size nor keep-alive of a model', async () => {
  const { llm, engine } = await hosted()
  const load = { contextSize: 512, keepAlive: 0 }

  for (const caller of [{ id: 'ann' }, { id: 'ann', scopes: ['inference', 'models'] }] as const)
    for await (const _event of await llm.generate({ ...text, load }, { signal, caller }));

  expect(engine.requests.map(({ load }) => load)).toEqual([{}, load])
})

test('chat() counts against the rate limits of its caller, and llm.limits.of() reports the rest', async () => {
  const { llm } = await hosted({ tiers: { gold: { requestsPerMinute: 2 } } })
  const caller: Caller = { id: 'ann', tier: 'gold' }
  const standing = () => llm.limits.of(caller)

  expect(await standing()).toMatchObject([{ name: 'requests', limit: 2, remaining: 2 }])
  await llm.chat('Hello', { caller })
  expect(await standing()).toMatchObject([{ name: 'requests', limit: 2, remaining: 1 }])
  await llm.chat('Hello', { caller })

  await expect(llm.chat('Hello', { caller })).rejects.toMatchObject({ code: 'rate_limit' })
  expect(await llm.limits.of({ id: 'bob' })).toEqual([])
  expect(llm.limits).not.toHaveProperty('close')
})
