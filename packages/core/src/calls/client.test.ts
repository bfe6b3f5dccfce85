import { afterEach, describe, expect, test, vi } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { createLlm } from '../create-llm.ts'
import { LlmError } from '../errors.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

const engine = scriptedEngine('Hello.')
const llm = await createLlm({ engine, models: emptyFolder() })
const signal = new AbortController().signal
const only = (...models: string[]) => llm.as({ id: 'key_a', models })

test('rejects other models in each method before the engine is called', async () => {
  const view = only('other')
  const refused = { code: 'permission', message: expect.stringMatching(/may not use the model "tiny/) }
  const text = { model: 'tiny', input: { kind: 'text', prompt: ['Hello'] } } as const

  for (const attempt of [
    async () => view.generate(text, { signal }),
    async () => view.countTokens(text, { signal }),
    async () => view.render(text, { signal }),
    async () => view.embed({ model: 'tiny', inputs: ['Hello'] }),
    async () => view.rerank({ model: 'tiny', query: 'a', documents: ['b'] }),
    async () => view.tokenize({ model: 'tiny', text: 'Hello' } as never),
    async () => view.detokenize({ model: 'tiny', tokens: [1] }),
    async () => view.load('tiny'),
    async () => view.unload('tiny'),
    async () => view.models.get('tiny'),
    async () => view.models.details('tiny'),
    async () => view.models.details(await llm.models.get('tiny')),
    async () => view.models.copy('other', 'tiny'),
    async () => view.models.copy('tiny', 'other'),
    async () => view.models.delete('tiny'),
    async () => view.models.create({ name: 'tiny' }),
    async () => view.models.create({ name: 'other', from: 'tiny' }),
    async () => view.models.pull('tiny'),
    async () => view.models.push('tiny'),
  ])
    await expect(attempt(), String(attempt)).rejects.toMatchObject(refused)
  expect(engine.requests).toEqual([])
})

test('a call without a model name is checked for the default model', async () => {
  await expect(only('other').embed({ inputs: ['Hello'] })).rejects.toMatchObject({ code: 'permission' })
  expect(await only('tiny').embed({ inputs: ['Hello'] })).toMatchObject({ inputTokens: 5 })
})

test("accepts each spelling of the caller's models", async () => {
  for (const allowed of ['tiny', 'TINY:latest', 'registry.ollama.ai/library/tiny']) {
    const view = only(allowed)

    expect((await view.models.list()).map(({ name }) => name)).toEqual(['tiny:latest'])
    for (const name of ['tiny', 'Tiny:Latest', 'library/tiny'])
      expect((await view.models.get(name)).name).toBe('tiny:latest')
  }
})

test('a different spelling may be the name of another model', async () => {
  await expect(only('tiny').models.get('tiny:local')).rejects.toMatchObject({ code: 'permission' })
  expect(await only('tiny', 'tiny:local').models.get('tiny:local')).toMatchObject({ name: 'tiny:latest' })
})

test('compares invalid names as they are', async () => {
  await expect(only('two words').models.get('two words')).rejects.toMatchObject({ code: 'not_found' })
  await expect(only('tiny').models.get('two words')).rejects.toMatchObject({ code: 'permission' })
})

test('shortens a long invalid name in the error', async () => {
  await expect(only('tiny').models.get('\ud800'.repeat(2 ** 20))).rejects.toSatisfy(
    ({ message }: Error) => message.length < 300 && message.isWellFormed(),
  )
})

describe('the limits that a client reports', () => {
  const request = { model: 'tiny', input: { kind: 'text', prompt: ['Hi'] } } as const
  afterEach(() => vi.useRealTimers())

  test('are none before a call, and none for a caller without limits', async () => {
    const client = llm.as({ id: 'unlimited' })
    const before = client.limitStatus()

    await client.countTokens(request)

    expect([before, client.limitStatus()]).toEqual([[], []])
  })

  test('are those of the call with the lowest remaining requests, in any order of calls', async () => {
    const client = llm.as({ id: 'several', limits: { requestsPerMinute: 9 } })
    for (let call = 0; call < 3; call++)
      for await (const _event of await client.generate(request, { signal }));

    // `countTokens` uses a separate bucket with more remaining requests.
    await client.countTokens(request)

    expect(client.limitStatus()).toMatchObject([{ name: 'requests', limit: 9, remaining: 6 }])
  })

  test('refill during a long unary call', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const client = llm.as({ id: 'slow', limits: { requestsPerMinute: 60 } })
    await client.countTokens(request)
    expect(client.limitStatus()).toMatchObject([{ remaining: 59, resetMs: 1_000 }])

    vi.advanceTimersByTime(600)
    expect(client.limitStatus()).toMatchObject([{ remaining: 59, resetMs: 400 }])
    vi.advanceTimersByTime(600)
    expect(client.limitStatus()).toMatchObject([{ remaining: 59, resetMs: 0 }])
  })

  test('are reported for a call that failed and for one that was rejected', async () => {
    const broken = await createLlm({
      engine: scriptedEngine(new LlmError('upstream', 'It broke.')),
      models: emptyFolder(),
    })
    const client = broken.as({ id: 'ann', limits: { requestsPerMinute: 1 } })

    await expect(client.generate(request, { signal })).rejects.toThrow('It broke.')
    const failed = client.limitStatus()
    const next = broken.as({ id: 'ann', limits: { requestsPerMinute: 1 } })
    await expect(next.generate(request, { signal })).rejects.toMatchObject({ code: 'rate_limit' })

    expect([failed, next.limitStatus()]).toMatchObject([[{ remaining: 0 }], [{ remaining: 0 }]])
    await broken.close()
  })
})
