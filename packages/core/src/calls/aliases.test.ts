/** Aliases of models, over HTTP and in process. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { serve } from '../../../../test/support/served.ts'
import { createLlm } from '../create-llm.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

/** `tiny` is the built-in model. */
const aliases = { 'claude-*': 'tiny', 'gpt-5': 'tiny', 'claude-local': 'tiny', lost: 'qwen3:8b' }

async function open(options: LlmOptions = {}): Promise<Llm> {
  const llm = await createLlm({ models: emptyFolder(), engine: scriptedEngine('Hi.'), aliases, ...options })
  onTestFinished(() => llm.close())
  return llm
}

test('the engine gets the model, and the answer has the name that was asked for', async () => {
  const engine = scriptedEngine('Hi.')
  const llm = await open({ engine })
  const input = { kind: 'text', prompt: ['Hi'] } as const

  const { model } = await llm.generate({ model: 'claude-sonnet-4-5', input })

  expect(model).toBe('claude-sonnet-4-5')
  expect(engine.requests).toMatchObject([{ model: 'tiny:latest' }])
})

test('`llm.models` finds a model by its alias, and other actions do not', async () => {
  const { models } = await open()

  expect((await models.get('GPT-5')).name).toBe('tiny:latest')
  expect((await models.details('claude-x')).architecture).toBe('llama')
  await expect(models.copy('gpt-5', 'b')).rejects.toThrow('model "gpt-5" not found')
  await expect(models.delete('gpt-5')).rejects.toThrow('model "gpt-5" not found')
})

test('aliases without patterns are listed if their model exists', async () => {
  const llm = await open()
  const listed = (await llm.models.aliases()).map(({ alias, model }) => [alias, model.name])

  expect(listed).toEqual([
    ['gpt-5', 'tiny:latest'],
    ['claude-local', 'tiny:latest'],
  ])
})

test('a model with the requested name comes before an alias', async () => {
  const llm = await open({ aliases: { tiny: 'qwen3:8b', '*': 'qwen3:8b' } })

  expect((await llm.models.get('Tiny')).name).toBe('tiny:latest')
  expect(await llm.models.aliases()).toEqual([])
})

test('settings, prices, limits and reports use the model, whichever alias was called', async () => {
  const engine = scriptedEngine('Hi.')
  const llm = await open({
    engine,
    database: ':memory:',
    prices: { tiny: { inputPerMillionUsd: 0, outputPerMillionUsd: 100_000 } },
    modelSettings: { tiny: { topK: 7 } },
    modelLimits: { tiny: { requestsPerMinute: 2 } },
  })

  await llm.chat('Hi', { model: 'gpt-5' })
  await llm.chat('Hi', { model: 'claude-x' })
  await expect(llm.chat('Hi', { model: 'claude-y' })).rejects.toMatchObject({ code: 'rate_limit' })

  const rows = await llm.usage.calls()
  expect(rows.map(({ model, nanoUsd }) => [model, Number(nanoUsd) > 0])).toEqual([
    ['tiny:latest', true],
    ['tiny:latest', true],
  ])
  expect(engine.requests.map(({ sampling }) => sampling?.topK)).toEqual([7, 7])
})

describe('a caller with some models', () => {
  test('uses them by any alias, and sees only their aliases', async () => {
    const llm = await open()
    const [own, other] = [llm.as({ id: 'a', models: ['tiny'] }), llm.as({ id: 'b', models: ['qwen3:8b'] })]

    expect((await own.chat('Hi', { model: 'gpt-5' })).text).toBe('Hi.')
    expect((await own.models.get('claude-x')).name).toBe('tiny:latest')
    expect((await own.models.details('claude-x')).architecture).toBe('llama')
    expect(await other.models.aliases()).toEqual([])
    expect(await own.models.aliases()).toHaveLength(2)
  })

  test('may not use an alias of another model, even if its list contains the alias', async () => {
    const llm = await open()
    const caller = llm.as({ id: 'a', models: ['gpt-5', 'claude-x'] })

    for (const model of ['gpt-5', 'claude-x', 'tiny']) {
      const refused = { code: 'permission', message: `This caller may not use the model "${model}".` }
      await expect(caller.chat('Hi', { model })).rejects.toMatchObject(refused)
      await expect(caller.models.get(model)).rejects.toMatchObject(refused)
      await expect(caller.models.details(model)).rejects.toMatchObject(refused)
    }
  })

  test('gets the same error for an unknown name', async () => {
    const llm = await open()

    await expect(llm.as({ id: 'a', models: ['tiny'] }).chat('Hi', { model: 'lost' })).rejects.toMatchObject({
      code: 'permission',
      message: 'This caller may not use the model "lost".',
    })
  })
})

test('an interceptor sees the model, and may answer with an alias, which is authorised again', async () => {
  const engine = scriptedEngine('Hi.')
  const seen: unknown[] = []
  const llm = await open({
    engine,
    interceptors: [
      {
        before: (call) => {
          seen.push(call.model, call.request.model)
          return call.kind === 'generate' ? { ...call.request, model: 'lost' } : undefined
        },
      },
    ],
  })

  await llm.chat('Hi', { model: 'gpt-5' })
  await expect(
    llm.chat('Hi', { model: 'gpt-5', caller: { id: 'a', models: ['tiny'] } }),
  ).rejects.toMatchObject({ code: 'permission' })

  expect(seen.slice(0, 2)).toEqual(['tiny:latest', 'tiny:latest'])
  expect(engine.requests).toMatchObject([{ model: 'qwen3:8b' }])
})

test('a group of prompts has one model', async () => {
  const engine = scriptedEngine('Hi.')
  const llm = await open({ engine })
  const input = { kind: 'text', prompt: ['Hi'] } as const
  const client = llm.as({ id: 'a', models: ['tiny'] })

  await client.generateGroup([
    { model: 'gpt-5', input },
    { model: 'gpt-5', input },
  ])
  await expect(
    client.generateGroup([
      { model: 'tiny', input },
      { model: 'other', input },
    ]),
  ).rejects.toThrow('Expected the same model for all prompts.')

  expect(engine.requests.every(({ model }) => model === 'tiny:latest')).toBe(true)
})

describe('over HTTP', () => {
  const post = async (url: string, path: string, body: object) => {
    const headers = path === '/v1/messages' ? { 'anthropic-version': '2023-06-01' } : undefined
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const options = { models: emptyFolder(), engine: scriptedEngine('Hi.'), aliases }
  const messages = [{ role: 'user', content: 'Hi' }]
  const paths = ['/api/chat', '/v1/chat/completions', '/v1/messages']

  test.each(paths)('%s answers an alias with the requested name', async (path) => {
    const { url } = await serve(options)
    const request = { model: 'claude-opus-4', max_tokens: 5, stream: false, messages }

    expect(await post(url, path, request)).toMatchObject({ status: 200, body: { model: 'claude-opus-4' } })
  })

  test('both lists of models contain aliases, and Ollama’s does not', async () => {
    const { url } = await serve(options)
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const body = (await (await fetch(`${url}${path}`, { headers })).json()) as Record<string, unknown>
      const all = (body.data ?? body.models) as { id?: string; name?: string }[]
      return all.map(({ id, name }) => id ?? name)
    }

    expect(await get('/v1/models')).toEqual(['tiny:latest', 'gpt-5', 'claude-local'])
    expect(await get('/v1/models', { 'anthropic-version': '2023-06-01' })).toEqual([
      ...['tiny:latest', 'gpt-5', 'claude-local'],
    ])
    expect(await get('/api/tags')).toEqual(['tiny:latest'])
  })

  test('one model is found by its alias: Anthropic’s API names the model, OpenAI’s the alias', async () => {
    const { url } = await serve(options)
    const get = async (headers: Record<string, string>) =>
      (await (await fetch(`${url}/v1/models/gpt-5`, { headers })).json()) as { id: string }

    expect((await get({})).id).toBe('gpt-5')
    expect((await get({ 'anthropic-version': '2023-06-01' })).id).toBe('tiny:latest')
    const { body } = await post(url, '/api/show', { model: 'gpt-5' })
    expect(body).toMatchObject({ details: { family: 'llama' } })
  })

  test('the error for a missing model names the model and the alias', async () => {
    const { url } = await serve({ models: emptyFolder(), aliases })
    const answers = await Promise.all(
      paths.map((path) => post(url, path, { model: 'lost', max_tokens: 5, messages })),
    )
    const suffix = 'not found (alias "lost")'

    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404])
    expect(answers.map(({ body }) => body)).toMatchObject([
      { error: `model 'qwen3:8b' ${suffix}` },
      { error: { message: `model "qwen3:8b" ${suffix}`, code: 'model_not_found' } },
      { error: { type: 'not_found_error', message: 'model: qwen3:8b (alias "lost")' } },
    ])
  })
})
