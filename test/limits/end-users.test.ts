/** Limits of each end user of a key, and of the output tokens of each call, in every API. */
import { createLlm, type KeySettings } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

async function start(limits: KeySettings['limits']) {
  const engine = scriptedEngine('one two three four')
  const llm = await createLlm({ engine, models: emptyFolder(), auth: 'keys', database: ':memory:' })
  const { url, close } = await listen(express().use(llmRouter(llm)))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const { secret } = await llm.keys.create({ name: 'app', limits })
  const post = (path: string, body: object) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'x-api-key': secret, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', ...body }),
    })
  return { engine, llm, post }
}

const messages = [{ role: 'user', content: 'Hi' }]
const anthropic = { messages, max_tokens: 9 }

/** The routes that name an end user: the path, the body, and the field with the id. */
const routes: readonly (readonly [path: string, body: object, fieldOf: (id: unknown) => object])[] = [
  ['/v1/chat/completions', { messages }, (user) => ({ user })],
  ['/v1/chat/completions', { messages, user: 'ignored' }, (safety_identifier) => ({ safety_identifier })],
  ['/v1/completions', { prompt: ['Hi', 'you'] }, (user) => ({ user })],
  ['/v1/responses', { input: 'Hi' }, (safety_identifier) => ({ safety_identifier })],
  ['/v1/embeddings', { input: 'Hi' }, (user) => ({ user })],
  ['/v1/messages', anthropic, (user_id) => ({ metadata: { user_id } })],
]

const rateLimited = (path: string, message: unknown): object =>
  path === '/v1/messages'
    ? { type: 'error', error: { type: 'rate_limit_error', message }, request_id: expect.any(String) }
    : { error: { message, type: 'requests', param: null, code: 'rate_limit_exceeded' } }

describe.each(routes)('%s with %j', (path, body, fieldOf) => {
  test('rejects the end user who has reached the limit, and no other', async () => {
    const { post, engine } = await start({ requestsPerMinute: 20, perEndUser: { requestsPerMinute: 2 } })
    const ask = (id: unknown) => post(path, { ...body, ...fieldOf(id) })

    for (const remaining of ['1', '0']) {
      const { status, headers } = await ask('u1')
      expect(status).toBe(200)
      const prefix = path === '/v1/messages' ? 'anthropic-ratelimit-requests-' : 'x-ratelimit-'
      const suffix = path === '/v1/messages' ? '' : '-requests'
      expect(headers.get(`${prefix}limit${suffix}`)).toBe('2')
      expect(headers.get(`${prefix}remaining${suffix}`)).toBe(remaining)
    }
    const before = engine.requests.length
    const refused = await ask('u1')

    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(20)
    const text = /limit of 2 requests per minute per end user\. Try again in \d+ s\.$/
    expect(await refused.json()).toEqual(rateLimited(path, expect.stringMatching(text)))
    expect(engine.requests).toHaveLength(before)
    expect((await ask('u2')).status).toBe(200)
    expect((await ask('u'.repeat(100_000))).status).toBe(200)
  })

  test('calls without an end user share one limit', async () => {
    const { post } = await start({ perEndUser: { requestsPerMinute: 2 } })

    const ask = (id: unknown) => post(path, { ...body, user: id, ...fieldOf(id) })

    for (const id of [undefined, null]) expect((await ask(id)).status).toBe(200)
    const refused = await ask('')

    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('per minute for calls without an end user.')
    expect((await post(path, { ...body, ...fieldOf('u1') })).status).toBe(200)
  })

  test('an id that is no string is a 400 that names the field', async () => {
    const { post } = await start({})

    const response = await post(path, { ...body, ...fieldOf(5) })

    expect(response.status).toBe(400)
    expect(await response.text()).toMatch(/'user'|'safety_identifier'|metadata\.user_id: /)
  })
})

test('Ollama names no end user, so its calls share one limit', async () => {
  const { post } = await start({ perEndUser: { requestsPerMinute: 1 } })

  expect((await post('/api/chat', { messages, user: 'u1' })).status).toBe(200)
  const refused = await post('/api/generate', { prompt: 'Hi', user: 'u2' })

  expect(refused.status).toBe(429)
  expect(await refused.json()).toEqual({ error: expect.stringContaining('for calls without an end user.') })
})

test('the headers report the limit with the least remaining, of the key or of the end user', async () => {
  const { post } = await start({ requestsPerMinute: 4, perEndUser: { requestsPerMinute: 2 } })
  const ask = async (user: string) => {
    const { headers } = await post('/v1/chat/completions', { messages, user })
    return ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}-requests`))
  }

  for (const user of ['u1', 'u2']) expect(await ask(user)).toEqual(['2', '1'])
  await ask('u3')
  expect(await ask('u4')).toEqual(['4', '0'])
})

test('the headers stay those of the minute when the day has less remaining', async () => {
  const { post, llm } = await start({ tokensPerMinute: 50_000, tokensPerDay: 300 })
  const { headers } = await post('/v1/chat/completions', { messages })
  const refused = await post('/v1/messages', { ...anthropic, max_tokens: 2_000 })

  expect(headers.get('x-ratelimit-limit-tokens')).toBe('50000')
  expect(refused.status).toBe(429)
  expect(refused.headers.get('anthropic-ratelimit-tokens-limit')).toBe('50000')
  expect(refused.headers.get('x-should-retry')).toBe('false')
  expect(await refused.text()).toContain('limit of 300 tokens per day.')
  const [key] = await llm.keys.list()
  expect(await llm.limits.of(key as NonNullable<typeof key>)).toMatchObject([
    { limit: 50_000 },
    { limit: 300, windowMs: 86_400_000 },
  ])
})

describe.each(databases())('two processes that share $name', ({ fresh }) => {
  /** Starts two `Llm`s. They share nothing but the database, like two processes. */
  async function startTwo() {
    const location = await fresh()
    const open = async () => {
      const engine = scriptedEngine('one two three four')
      const llm = await createLlm({ engine, models: emptyFolder(), auth: 'host', database: location })
      onTestFinished(() => llm.close())
      return llm
    }
    const database = await openDatabase(location)
    onTestFinished(() => database.close())
    const subjects = async () =>
      (await database.query<{ subject: string }>('SELECT subject FROM modelmount_limits')).map(
        ({ subject }) => subject,
      )
    return { llms: [await open(), await open()] as const, subjects }
  }
  const codeOf = (call: Promise<unknown>) =>
    call.then(
      () => 'admitted',
      (cause) => cause.code,
    )

  test('count an end user together, and store no id of an end user', async () => {
    const { llms, subjects } = await startTwo()
    const caller = { id: 'ann', limits: { perEndUser: { requestsPerMinute: 2, tokensPerMinute: 10_000 } } }
    const ask = (llm: (typeof llms)[number], endUser: string) =>
      codeOf(llm.chat('Hi', { model: 'tiny', caller, endUser }))

    for (const llm of llms) expect(await ask(llm, 'ada@example.com')).toBe('admitted')
    for (const llm of llms) expect(await ask(llm, 'ada@example.com')).toBe('rate_limit')
    for (const llm of llms) expect(await ask(llm, 'bob@example.com')).toBe('admitted')

    expect(new Set(await subjects()).size).toBe(2)
    expect((await subjects()).join()).not.toContain('@')
  })

  test('count the tokens of a day together', async () => {
    const { llms } = await startTwo()
    const caller = { id: 'ann', limits: { tokensPerDay: 40, maxOutputTokens: 20 } }
    const ask = (llm: (typeof llms)[number]) => codeOf(llm.chat('Hi', { model: 'tiny', caller }))

    const results: string[] = []
    for (let index = 0; index < 20; index++) results.push(await ask(llms[index % 2 === 0 ? 0 : 1]))

    const admitted = results.indexOf('rate_limit')
    expect(admitted).toBeGreaterThan(1)
    expect(results.slice(admitted)).toEqual(Array(20 - admitted).fill('rate_limit'))
  })

  test('admit a key with a new end user in each call no more often, and store none that are rejected', async () => {
    const { llms, subjects } = await startTwo()
    const caller = { id: 'ann', limits: { requestsPerMinute: 3, perEndUser: { requestsPerMinute: 1 } } }
    const calls = Array.from({ length: 40 }, (_, index) =>
      codeOf(llms[index % 2 === 0 ? 0 : 1].chat('Hi', { model: 'tiny', caller, endUser: `user ${index}` })),
    )

    const results = await Promise.all(calls)

    expect(results.filter((result) => result === 'admitted')).toHaveLength(3)
    expect(results.filter((result) => result === 'rate_limit')).toHaveLength(37)
    expect(await subjects()).toHaveLength(4)
  })
})

describe('the maximum output tokens of a key', () => {
  const max = { maxOutputTokens: 2 }

  test.each([
    ['/v1/chat/completions', { messages, max_tokens: 3 }, 'max_tokens'],
    ['/v1/chat/completions', { messages, max_completion_tokens: 3, stream: true }, 'max_completion_tokens'],
    ['/v1/completions', { prompt: ['Hi'], max_tokens: 3 }, 'max_tokens'],
    ['/v1/responses', { input: 'Hi', max_output_tokens: 3 }, 'max_output_tokens'],
    ['/v1/messages', { messages, max_tokens: 3 }, 'max_tokens'],
    ['/api/chat', { messages, options: { num_predict: 3 } }, 'options.num_predict'],
    ['/api/generate', { prompt: 'Hi', options: { num_predict: 3 } }, 'options.num_predict'],
  ])('rejects a higher maximum of %s %j with 400, and names the field', async (path, body, field) => {
    const { post, engine } = await start(max)

    const response = await post(path, body)

    const reason = 'Expected at most 2 output tokens, the limit of this caller, got 3.'
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject(
      path.startsWith('/api')
        ? { error: `invalid ${field}: ${reason}` }
        : path === '/v1/messages'
          ? { error: { type: 'invalid_request_error', message: `${field}: ${reason}` } }
          : { error: { message: reason, param: field, code: 'integer_above_max_value' } },
    )
    expect(engine.requests).toEqual([])
  })

  test.each([
    ['/v1/chat/completions', { messages }, { choices: [{ finish_reason: 'length' }] }],
    ['/v1/chat/completions', { messages, max_tokens: -1 }, { choices: [{ finish_reason: 'length' }] }],
    ['/v1/completions', { prompt: 'Hi' }, { usage: { completion_tokens: 2 } }],
    ['/v1/responses', { input: 'Hi' }, { incomplete_details: { reason: 'max_output_tokens' } }],
    ['/v1/messages', { messages, max_tokens: 2 }, { stop_reason: 'max_tokens' }],
    ['/api/chat', { messages, stream: false }, { done_reason: 'length' }],
    ['/api/chat', { messages, stream: false, options: { num_predict: -1 } }, { done_reason: 'length' }],
  ])('ends an answer of %s %j without a higher maximum', async (path, body, expected) => {
    const { post, engine } = await start(max)

    const response = await post(path, body)

    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject(expected)
    expect(new Set(engine.requests.map(({ maxTokens }) => maxTokens))).toEqual(new Set([2]))
  })

  test('is divided between the prompts of one request', async () => {
    const { post, engine } = await start(max)
    const prompt = ['Hi', 'you']

    const rejected = await post('/v1/completions', { prompt, max_tokens: 2 })
    const answered = await post('/v1/completions', { prompt })

    const message =
      'Expected at most 1 output token for each of 2 prompts, since the limit of this caller is 2 output tokens, got 2.'
    expect(rejected.status).toBe(400)
    expect(await rejected.json()).toMatchObject({ error: { message, param: 'max_tokens' } })
    expect(await answered.json()).toMatchObject({ usage: { completion_tokens: 2 } })
    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([1, 1])
  })

  test('lowers the maximum of a Modelfile', async () => {
    const { llm, post, engine } = await start(max)
    for await (const _ of llm.models.create({ name: 'long', from: 'tiny', parameters: { num_predict: 50 } }));
    for await (const _ of llm.models.create({ name: 'short', from: 'tiny', parameters: { num_predict: 1 } }));

    for (const model of ['long', 'short'])
      expect((await post('/v1/chat/completions', { messages, model })).status).toBe(200)

    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([2, 1])
  })
})
