/** Calls that another app forwards: its key names their tenants, and they are neither limited nor charged. */
import { type Caller, createLlm, type LlmOptions } from '@modelmount/core'
import type { Engine, EngineCall, LoadOptions } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const headerName = 'x-modelmount-forwarded'
const messages = [{ role: 'user', content: 'Hi' }]

const routes: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { messages }],
  ['/v1/completions', { prompt: 'Hi' }],
  ['/v1/responses', { input: 'Hi' }],
  ['/v1/messages', { messages, max_tokens: 10 }],
  ['/api/chat', { messages }],
  ['/api/generate', { prompt: 'Hi', stream: false }],
  ['/v1/embeddings', { input: 'Hi' }],
  ['/api/embed', { input: 'Hi' }],
]

async function started(options: LlmOptions = {}, caller?: Caller) {
  const scripted = scriptedEngine('Hello there.')
  const calls: EngineCall[] = []
  const loads: (LoadOptions | undefined)[] = []
  const unloaded: string[] = []
  const engine: Engine = {
    ...scripted,
    generate: (request, call) => {
      calls.push(call)
      loads.push(request.load)
      return scripted.generate(request, call)
    },
    embed: async ({ inputs }, call) => {
      calls.push(call)
      return { embeddings: inputs.map(() => [1]), inputTokens: inputs.length, loadMs: 0, totalMs: 0 }
    },
    unload: async (model) => void unloaded.push(model),
  }
  const llm = await createLlm({
    ...{ engine, models: emptyFolder(), database: ':memory:', auth: caller ? 'host' : 'keys' },
    ...{ prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } } },
    ...options,
  })
  const { url, close } = await listen(
    express().use(llmRouter(llm, caller ? { authenticate: () => caller } : {})),
  )
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const ask = (path: string, body: object, secret: string, forwarded?: string): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': secret },
        ...{ authorization: `Bearer ${secret}`, ...(forwarded !== undefined && { [headerName]: forwarded }) },
      },
      body: JSON.stringify({ model: 'tiny', ...body }),
    })
  return { llm, calls, loads, unloaded, ask }
}

test('calls of a key with the scope fleet reach the engine as calls of their tenants', async () => {
  const { llm, calls, ask } = await started()
  const { secret } = await llm.keys.create({ name: 'front', scopes: ['inference', 'fleet'] })

  for (const [path, body] of routes) {
    const { status } = await ask(path, body, secret, 'tenant=team%201%26%C3%A4&weight=2.5&background=true')
    expect([path, status]).toEqual([path, 200])
  }
  await ask('/v1/completions', { prompt: 'Hi' }, secret, 'tenant=')

  expect(calls).toHaveLength(routes.length + 1)
  for (const call of calls.slice(0, -1))
    expect(call).toMatchObject({ tenant: 'team 1&ä', weight: 2.5, background: true })
  expect(calls.at(-1)).toMatchObject({ tenant: '', weight: 1, background: false })
})

test('they are neither limited nor charged, unlike other calls of the same key', async () => {
  const { llm, ask } = await started()
  const { secret } = await llm.keys.create({
    ...{ name: 'front', scopes: ['inference', 'fleet'] },
    limits: { requestsPerMinute: 1, tokensPerMinute: 1_000, maxOutputTokens: 5, concurrent: 1 },
    spendingLimit: { usd: 0.001, period: 'day' },
  })

  for (const [path, body] of routes) {
    const response = await ask(path, { ...body, max_output_tokens: 10_000 }, secret, 'tenant=ann')
    await response.text()
    expect([path, response.status]).toEqual([path, 200])
    expect([...response.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([])
  }
  expect(await llm.usage.report({ by: 'key' })).toEqual([])

  const own = [await ask(...chat, secret), await ask(...chat, secret)]
  for (const response of own) await response.text()
  expect(own.map(({ status }) => status)).toEqual([200, 429])
  expect(await llm.usage.report({ by: 'key' })).toMatchObject([{ calls: 1 }])
})

const chat = ['/v1/chat/completions', { messages, max_tokens: 5 }] as const

test('the header of a caller without the scope gets 403, and no call reaches the engine', async () => {
  const { llm, calls, ask } = await started()
  const { secret } = await llm.keys.create({ name: 'other', scopes: ['inference', 'models', 'admin'] })

  for (const [path, body] of routes)
    expect([path, (await ask(path, body, secret, 'tenant=ann')).status]).toEqual([path, 403])

  expect(calls).toEqual([])
})

test('a caller of the host app has the scope if the app grants it', async () => {
  const { calls, ask } = await started({}, { id: 'front', scopes: ['inference', 'fleet'] })

  expect((await ask(...chat, '', 'tenant=ann')).status).toBe(200)

  expect(calls).toMatchObject([{ tenant: 'ann' }])
})

test.each([
  ['', 'tenant'],
  ['weight=1', 'tenant'],
  ['tenant=a&weight=0', 'weight'],
  ['tenant=a&weight=Infinity', 'weight'],
  ['tenant=a&weight=', 'weight'],
  ['tenant=a&weight=1001', 'weight'],
  ['tenant=a&background=yes', 'background'],
  ['tenant=a&contextSize=1.5', 'contextSize'],
  ['tenant=a&contextSize=99999999', 'contextSize'],
])('the header %j is a 400 that names `%s`', async (header, field) => {
  const { llm, calls, ask } = await started()
  const { secret } = await llm.keys.create({ name: 'front', scopes: ['inference', 'fleet'] })

  const response = await ask(...chat, secret, header)

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    error: { message: expect.stringContaining(`expected \`${field}\` to be`) },
  })
  expect(calls).toEqual([])
})

test('they choose how the model is loaded and unload it, and name the context size of another caller', async () => {
  const { llm, calls, loads, unloaded, ask } = await started()
  const { secret } = await llm.keys.create({ name: 'front', scopes: ['inference', 'fleet'] })
  const sized = { prompt: 'Hi', options: { num_ctx: 2_048 } }

  await (await ask('/api/generate', sized, secret, 'tenant=ann')).text()
  await (await ask('/api/generate', { prompt: 'Hi' }, secret, 'tenant=ann&contextSize=8192')).text()
  await (await ask('/api/generate', { keep_alive: 0 }, secret, 'tenant=ann')).text()

  expect(loads).toMatchObject([{ contextSize: 2_048 }, {}])
  expect(calls.map((call) => call.requestedContextSize)).toEqual([undefined, 8_192])
  expect(unloaded).toEqual(['tiny'])
})

test('stored responses belong to the tenant, and batches cannot be forwarded', async () => {
  const { llm, ask } = await started()
  const { secret } = await llm.keys.create({ name: 'front', scopes: ['inference', 'fleet'] })
  const stored = (await (await ask('/v1/responses', { input: 'Hi' }, secret, 'tenant=ann')).json()) as {
    readonly id: string
  }
  const next = { input: 'Go on', previous_response_id: stored.id }

  expect((await ask('/v1/responses', next, secret, 'tenant=bob')).status).toBe(400)
  expect((await ask('/v1/responses', next, secret, 'tenant=ann')).status).toBe(200)
  const requests = [{ custom_id: 'a', params: { model: 'tiny', messages, max_tokens: 4 } }]
  expect((await ask('/v1/messages/batches', { requests }, secret, 'tenant=ann')).status).toBe(400)
})
