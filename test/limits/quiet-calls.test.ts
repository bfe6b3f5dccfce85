/** Rate limits of requests without inference: admin API, token counting, prompt rendering, model loading. */
import { createLlm, type KeySettings } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const json = { 'content-type': 'application/json' }

async function start(settings: Omit<KeySettings, 'name'>) {
  const llm = await createLlm({
    engine: scriptedEngine('Hello.'),
    models: emptyFolder(),
    auth: 'keys',
    database: ':memory:',
  })
  const { url, close } = await listen(express().use('/admin', adminRouter(llm)).use(llmRouter(llm)))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const { secret } = await llm.keys.create({ name: 'ann', ...settings })
  const headers = { 'x-api-key': secret, ...json }
  return {
    llm,
    get: (path: string) => fetch(url + path, { headers }),
    post: (path: string, body: object) =>
      fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) }),
  }
}

const question = { model: 'tiny', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }

test('a key with the scope admin has a separate bucket for admin requests', async () => {
  const { get, post } = await start({
    scopes: ['admin', 'inference'],
    limits: { requestsPerMinute: 3, concurrent: 1 },
  })
  for (let call = 0; call < 3; call++) expect((await post('/v1/messages', question)).status).toBe(200)

  for (const [path, remaining] of [
    ['/admin/keys', '2'],
    ['/admin/openapi.json', '1'],
    ['/admin/keys/key_unknown', '0'],
  ] as const) {
    const response = await get(path)
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('3')
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe(remaining)
  }
  const refused = await get('/admin/keys')

  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(17)
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(20)
  expect(await refused.json()).toEqual({
    error: { code: 'rate_limit', message: expect.stringContaining('3 requests per minute') },
  })
})

test('a rate-limited admin request changes nothing', async () => {
  const { llm, post } = await start({ scopes: ['admin'], limits: { requestsPerMinute: 1 } })
  await post('/admin/keys', { name: 'bob' })

  expect((await post('/admin/keys', { name: 'eve' })).status).toBe(429)
  expect((await llm.keys.list()).map(({ name }) => name).sort()).toEqual(['ann', 'bob'])
})

test('rendering a prompt counts against the bucket of token counting, in both APIs', async () => {
  const { post } = await start({ limits: { requestsPerMinute: 2 } })
  const chat = { model: 'tiny', messages: question.messages, _debug_render_only: true }
  const count = { model: 'tiny', messages: question.messages }

  expect((await post('/api/chat', chat)).status).toBe(200)
  expect((await post('/v1/messages/count_tokens', count)).status).toBe(200)
  const refused = await post('/api/chat', chat)

  expect(refused.status).toBe(429)
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(27)
  expect((await post('/v1/messages', question)).status).toBe(200)
})

test('loading a model counts as a request, and an invalid model name does not', async () => {
  const { post } = await start({ limits: { requestsPerMinute: 2 } })

  expect((await post('/api/generate', { model: 'two words' })).status).toBe(400)
  expect((await post('/api/generate', { model: 'tiny' })).status).toBe(200)
  expect((await post('/v1/messages', question)).status).toBe(200)
  const refused = await post('/api/embed', { model: 'tiny', input: [] })

  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(27)
})

test('a key with the scope inference can neither unload a model nor load it with a larger context', async () => {
  const asking = await start({})
  const changing = await start({ scopes: ['inference', 'models'] })
  const loads = [
    { model: 'tiny', keep_alive: 0 },
    { model: 'tiny', options: { num_ctx: 8_192 } },
  ]

  for (const path of ['/api/generate', '/api/chat'])
    for (const body of loads) {
      const refused = await asking.post(path, body)
      expect(refused.status).toBe(403)
      expect(await refused.json()).toEqual({ error: expect.stringContaining("scope 'models'") })
      expect((await changing.post(path, body)).status).toBe(200)
    }
  for (const options of [undefined, { num_ctx: 512 }])
    expect((await asking.post('/api/generate', { model: 'tiny', keep_alive: -1, options })).status).toBe(200)
  expect(asking.llm.loaded()).toMatchObject([{ contextSize: 4_096 }])
})

test('rejected token counts, with an invalid prompt or a forbidden model, do not count as requests', async () => {
  const { post } = await start({ limits: { requestsPerMinute: 1 }, models: ['tiny'] })
  const count = { model: 'tiny', messages: question.messages }

  expect((await post('/v1/messages/count_tokens', { ...count, messages: 'Hi' })).status).toBe(400)
  expect((await post('/v1/messages/count_tokens', { ...count, model: 'other' })).status).toBe(403)
  expect((await post('/v1/messages/count_tokens', count)).status).toBe(200)
  expect((await post('/v1/messages/count_tokens', count)).status).toBe(429)
})

test('calls of every inference route count requests and tokens, and are in the ledger', async () => {
  const { llm, post } = await start({ limits: { requestsPerMinute: 100, tokensPerMinute: 100_000 } })
  const { messages } = question
  const routes = {
    '/api/chat': { model: 'tiny', messages, stream: false },
    '/api/generate': { model: 'tiny', prompt: 'Hi', stream: false },
    '/api/embed': { model: 'tiny', input: ['Hi', 'you'] },
    '/api/embeddings': { model: 'tiny', prompt: 'Hi' },
    '/v1/chat/completions': { model: 'tiny', messages },
    '/v1/completions': { model: 'tiny', prompt: 'Hi' },
    '/v1/embeddings': { model: 'tiny', input: ['Hi', 'you'] },
    '/v1/messages': question,
  }

  for (const [index, [path, body]] of Object.entries(routes).entries()) {
    const response = await post(path, body)
    const remaining = (name: string) =>
      Number(
        response.headers.get(`x-ratelimit-remaining-${name}`) ??
          response.headers.get(`anthropic-ratelimit-${name}-remaining`),
      )
    expect([path, response.status, remaining('requests')]).toEqual([path, 200, 99 - index])
    expect(remaining('tokens')).toBeLessThan(100_000)
    await response.text()
  }

  const calls = await llm.usage.calls()
  expect(calls).toHaveLength(Object.keys(routes).length)
  for (const { status, tokens } of calls) {
    expect(status).toBe('ended')
    expect(tokens.input).toBeGreaterThan(0)
  }
})
