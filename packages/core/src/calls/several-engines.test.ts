/** An app with several engines, over HTTP and in process. */
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { chats, type Served, serve } from '../../../../test/support/served.ts'
import { createLlm } from '../create-llm.ts'
import type { LlmOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

const anthropicVersion = { 'anthropic-version': '2023-06-01' }

/** `tiny` is the built-in model, which the local engine has. The engine `gpu` has one of this name, too. */
const openEngines = () => ({
  engine: scriptedEngine('local'),
  engines: {
    gpu: scriptedEngine('gpu', { models: ['tiny', 'qwen3:8b'], contextSize: 32_768 }),
    hosted: scriptedEngine('hosted', { models: ['qwen3:8b', 'gpt-5'] }),
  },
})

async function open(options: LlmOptions = {}) {
  const engines = openEngines()
  return { ...engines.engines, ...(await serve({ models: emptyFolder(), ...engines, ...options })) }
}

async function ask(
  { post }: Pick<Served, 'post'>,
  model: string,
  headers?: Readonly<Record<string, string>>,
) {
  const answers = chats.map(async ({ path, body }) => {
    const response = await post(path, { ...body, model }, headers)
    return { status: response.status, text: await response.text() }
  })
  return Promise.all(answers)
}

/** The ids that each API lists. */
async function list({ url }: Served, headers: Readonly<Record<string, string>> = {}) {
  const read = async (path: string, more = {}) =>
    (await fetch(url + path, { headers: { ...headers, ...more } })).json()
  const ids = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id).sort()
  const tags = (await read('/api/tags')) as { models: readonly { name: string }[] }
  return {
    ollama: tags.models.map(({ name }) => name).sort(),
    openai: ids((await read('/v1/models')) as never),
    anthropic: ids((await read('/v1/models', anthropicVersion)) as never).filter((id) => !/-\d{8}$/.test(id)),
  }
}

const everything = ['gpu/qwen3:8b', 'gpu/tiny', 'hosted/gpt-5', 'hosted/qwen3:8b', 'tiny:latest']

test.each([
  ['gpu/tiny', 'gpu'],
  ['GPU/tiny:latest', 'gpu'],
  ['hosted/qwen3:8b', 'hosted'],
  ['qwen3:8b', 'gpu'],
  ['gpt-5', 'hosted'],
  ['tiny', 'local'],
  ['best', 'hosted'],
])('each API answers the model %s with the engine %s', async (model, engine) => {
  const served = await open({ aliases: { best: 'hosted/qwen3:8b' } })

  for (const { status, text } of await ask(served, model)) {
    expect(status).toBe(200)
    expect(text).toContain(`"${engine}"`)
    expect(text).toContain(`"model":"${model}"`)
  }
})

test('a model that the engine does not know is not found', async () => {
  const served = await open()

  for (const { status, text } of await ask(served, 'gpu/gpt-5')) {
    expect(status).toBe(404)
    expect(text).toContain('gpu/gpt-5')
  }
})

test('an alias comes before a model of an engine without its engine, and after the full name', async () => {
  const { llm } = await open({ aliases: { 'gpt-*': 'gpu/tiny', 'gpu/qwen3:8b': 'tiny' } })
  const nameOf = async (name: string) => (await llm.models.get(name)).name

  expect(await nameOf('gpt-5')).toBe('gpu/tiny')
  expect(await nameOf('gpu/qwen3:8b')).toBe('gpu/qwen3:8b')
})

test('the lists of all APIs have the models of all engines', async () => {
  const served = await open()

  expect(await list(served)).toEqual({ ollama: everything, openai: everything, anthropic: everything })
  expect((await served.llm.models.list()).map(({ name, engine }) => [name, engine])).toEqual([
    ['gpu/qwen3:8b', 'gpu'],
    ['gpu/tiny', 'gpu'],
    ['hosted/gpt-5', 'hosted'],
    ['hosted/qwen3:8b', 'hosted'],
    ['tiny:latest', undefined],
  ])
})

test('the APIs show a model of an engine with its capabilities and context size', async () => {
  const { url, post, llm } = await open()
  const capabilities = ['completion', 'embedding', 'tools', 'thinking']
  const { models } = (await (await fetch(`${url}/api/tags`)).json()) as {
    models: readonly { name: string }[]
  }
  const shown = await (await post('/api/show', { model: 'gpu/tiny' })).json()
  const openai = await (await fetch(`${url}/v1/models/gpu/tiny`)).json()
  const anthropic = await (await fetch(`${url}/v1/models/gpu/tiny`, { headers: anthropicVersion })).json()

  expect(models.find(({ name }) => name === 'gpu/tiny')).toMatchObject({
    capabilities,
    details: { context_length: 32_768, format: '' },
  })
  expect(shown).toMatchObject({ capabilities, details: { format: '' } })
  expect(openai).toMatchObject({ id: 'gpu/tiny', owned_by: 'modelmount' })
  expect(anthropic).toMatchObject({ id: 'gpu/tiny', max_input_tokens: 32_768 })
  expect(await llm.models.details('gpu/tiny')).toMatchObject({ capabilities, contextSize: 32_768 })
})

test('`/api/ps` shows the loaded models of all engines', async () => {
  const served = await open()
  await ask(served, 'gpu/tiny')
  await ask(served, 'tiny')
  const { models } = (await (await fetch(`${served.url}/api/ps`)).json()) as { models: readonly object[] }

  expect(models).toEqual(
    expect.arrayContaining([expect.objectContaining({ name: 'gpu/tiny', context_length: 32_768 })]),
  )
  expect(models).toHaveLength(2)
})

test.each([
  ['/api/pull', { model: 'gpu/new' }, 'pulled'],
  ['/api/push', { model: 'gpu/tiny' }, 'pushed'],
  ['/api/create', { model: 'gpu/new', from: 'tiny' }, 'created'],
  ['/api/create', { model: 'new', from: 'gpu/tiny' }, 'copied'],
  ['/api/copy', { source: 'gpu/tiny', destination: 'new' }, 'copied'],
  ['/api/copy', { source: 'tiny', destination: 'gpu/new' }, 'created'],
])('%s with %j is rejected, because it is a model of an engine', async (path, body, action) => {
  const { post } = await open({ scopes: ['inference', 'models'] })
  const name = Object.values(body).find((value) => value.startsWith('gpu/'))

  const response = await post(path, body)

  expect(response.status).toBe(400)
  expect(await response.json()).toEqual({
    error: `"${name}" is a model of the engine "gpu", so it cannot be ${action} here.`,
  })
})

test('a model of an engine cannot be deleted', async () => {
  const { url, llm } = await open({ scopes: ['inference', 'models'] })
  const ollama = await fetch(`${url}/api/delete`, {
    method: 'DELETE',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpu/tiny' }),
  })
  const openai = await fetch(`${url}/v1/models/gpu/tiny`, { method: 'DELETE' })
  const message = '"gpu/tiny" is a model of the engine "gpu", so it cannot be deleted here.'

  expect([ollama.status, await ollama.json()]).toEqual([400, { error: message }])
  expect([openai.status, await openai.json()]).toEqual([
    400,
    { error: expect.objectContaining({ message, type: 'invalid_request_error', param: 'model' }) },
  ])
  await expect(llm.models.delete('gpu/tiny')).rejects.toMatchObject({ code: 'invalid_request' })
})

test.each([
  [['gpu/*'], ['gpu/qwen3:8b', 'gpu/tiny']],
  [['gpu/tiny'], ['gpu/tiny']],
  [
    ['*/qwen3:*', 'tiny'],
    ['gpu/qwen3:8b', 'hosted/qwen3:8b', 'tiny:latest'],
  ],
])('a key with the models %j sees and uses exactly %j', async (models, allowed) => {
  const served = await open({ auth: 'keys', database: ':memory:' })
  const { secret } = await served.llm.keys.create({ name: 'ann', models })
  const key = { 'x-api-key': secret }

  expect(await list(served, key)).toEqual({ ollama: allowed, openai: allowed, anthropic: allowed })
  for (const name of everything)
    for (const { status } of await ask(served, name, key))
      expect(status).toBe(allowed.includes(name) ? 200 : 403)
})

test('the full name decides, whichever spelling a key uses', async () => {
  const served = await open({ auth: 'keys', database: ':memory:', aliases: { best: 'gpu/qwen3:8b' } })
  const { secret } = await served.llm.keys.create({ name: 'ann', models: ['gpu/*'] })
  const { secret: other } = await served.llm.keys.create({
    name: 'bob',
    models: ['qwen3:8b', 'best', 'gpt-5'],
  })
  const statusesOf = async (model: string, key: string) =>
    (await ask(served, model, { 'x-api-key': key })).map(({ status }) => status)

  for (const name of ['qwen3:8b', 'best', 'GPU/qwen3:8b']) {
    expect(await statusesOf(name, secret), name).toEqual([200, 200, 200])
    expect(await statusesOf(name, other), name).toEqual([403, 403, 403])
  }
  expect(await statusesOf('gpt-5', secret)).toEqual([403, 403, 403])
  expect(await statusesOf('gpt-5', other)).toEqual([403, 403, 403])
})

test('settings, prices, limits and reports use the full name, whichever spelling was called', async () => {
  const { llm, gpu } = await open({
    database: ':memory:',
    prices: {
      'gpu/qwen3:8b': { inputPerMillionUsd: 0, outputPerMillionUsd: 1_000 },
      '*': { inputPerMillionUsd: 0, outputPerMillionUsd: 1 },
    },
    modelSettings: { 'gpu/*': { maxTokens: 7 } },
    modelLimits: { 'gpu/qwen3:8b': { requestsPerMinute: 3 } },
    aliases: { best: 'gpu/qwen3:8b' },
  })
  const caller = { id: 'ann' }
  for (const model of ['gpu/qwen3:8b', 'qwen3:8b', 'best']) await llm.as(caller).chat('Hi', { model })
  await expect(llm.as(caller).chat('Hi', { model: 'GPU/qwen3:8b' })).rejects.toMatchObject({
    code: 'rate_limit',
  })

  const rows = await llm.usage.calls()
  expect(rows.map(({ model, nanoUsd }) => [model, Number(nanoUsd)])).toEqual(
    Array(3).fill(['gpu/qwen3:8b', 1_000_000]),
  )
  expect(gpu.requests.map(({ model, maxTokens }) => [model, maxTokens])).toEqual(
    Array(3).fill(['qwen3:8b', 7]),
  )
})

test('a spending limit counts the price of the full name', async () => {
  const { llm } = await open({
    database: ':memory:',
    prices: {
      'gpu/qwen3:8b': { inputPerMillionUsd: 0, outputPerMillionUsd: 1_000 },
      'qwen3:8b': { inputPerMillionUsd: 0, outputPerMillionUsd: 0 },
    },
  })
  const caller = { id: 'ann', spendingLimit: { usd: 0.002, period: 'day' } } as const
  const ask = (model: string) => llm.as(caller).chat('Hi', { model, maxTokens: 1 })

  await ask('qwen3:8b')
  await ask('gpu/qwen3:8b')

  await expect(ask('qwen3:8b')).rejects.toMatchObject({ code: 'quota' })
})

test.each([
  [{ 'a b': scriptedEngine('') }, "got 'a b'"],
  [{ local: scriptedEngine('') }, "got 'local'"],
  [{ gpu: scriptedEngine('', { models: [] }), GPU: scriptedEngine('', { models: [] }) }, 'are the same'],
  [{ gpu: scriptedEngine('') }, 'Expected `engines.gpu` to have the method findModel()'],
  [{ gpu: {} }, 'Expected `engines.gpu` to have the method generate()'],
  [[], 'Expected `engines` to be an object'],
])('the engines %j are rejected', async (engines, message) => {
  await expect(createLlm({ engines: engines as never })).rejects.toThrow(message)
})

test('models of the store whose names begin with an engine are hidden', async () => {
  const models = emptyFolder()
  const before = await createLlm({ models, engine: scriptedEngine('') })
  await before.models.copy('tiny', 'gpu/mine')
  expect((await before.models.list()).map(({ name }) => name)).toContain('gpu/mine:latest')
  await before.close()
  const served = await open({ models })

  expect((await list(served)).ollama).toEqual(everything)
  for (const name of ['gpu/mine', 'registry.ollama.ai/gpu/mine'])
    await expect(served.llm.models.get(name), name).rejects.toMatchObject({ code: 'not_found' })
})

test('an engine that is away is a problem of its models, and not of the app', async () => {
  const health = {
    problem: async () => 'away',
    problemOf: async () => 'The server is away.',
    probe: async () => {},
  }
  const engines = { gpu: { ...scriptedEngine('', { models: ['qwen3'] }), health } }
  const llm = await createLlm({ models: emptyFolder(), engine: scriptedEngine(''), engines })
  onTestFinished(() => llm.close())

  expect(await llm.checkHealth()).toMatchObject({ status: 'ok' })
  expect((await llm.checkHealth({ models: ['gpu/qwen3'] })).checks['model gpu/qwen3']).toEqual({
    status: 'unavailable',
    reason: 'The server is away.',
  })
})
