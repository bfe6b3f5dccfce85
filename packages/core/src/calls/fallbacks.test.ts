/** Aliases with several models: fallbacks in order, and weights. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { chats, serve } from '../../../../test/support/served.ts'
import { createLlm } from '../create-llm.ts'
import { LlmError, type LlmErrorCode } from '../errors.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { type Script, scriptedEngine } from '../testing/scripted-engine.ts'
import type { CallerLlm } from './app-calls.ts'

const input = { kind: 'text', prompt: ['Hi'] } as const
const failing = (code: LlmErrorCode): Script => new LlmError(code, 'It failed.')
const aliases = { best: ['gpu/a', 'box/a', 'tiny'] } as const

/** `tiny` is the built-in model, which the first engine has. */
const toOptions = (scripts: { readonly gpu: Script; readonly box?: Script; readonly first?: Script }) => {
  const engines = {
    gpu: scriptedEngine(scripts.gpu, { models: ['a'] }),
    box: scriptedEngine(scripts.box ?? 'box', { models: ['a'] }),
  }
  return { models: emptyFolder(), engine: scriptedEngine(scripts.first ?? 'first'), engines, aliases }
}

async function open(scripts: Parameters<typeof toOptions>[0], options: LlmOptions = {}) {
  const given = toOptions(scripts)
  const llm = await createLlm({ ...given, ...options })
  onTestFinished(() => llm.close())
  return { llm, ...given.engines, first: given.engine }
}

const ask = async (llm: Pick<Llm, 'chat'> | CallerLlm, model = 'best') =>
  (await llm.chat('Hi', { model })).text

test.each(['not_found', 'overloaded', 'unavailable', 'upstream'] as const)(
  'the next model answers if the one before fails with `%s` before its first event',
  async (code) => {
    const { llm } = await open({ gpu: failing(code) })

    expect(await ask(llm)).toBe('box')
  },
)

test('all models are tried in order, and the last error is that of the call', async () => {
  const { llm, gpu, box, first } = await open({
    gpu: failing('overloaded'),
    box: failing('upstream'),
    first: new LlmError('upstream', 'The last one failed.'),
  })

  await expect(ask(llm)).rejects.toThrow('The last one failed.')
  expect([gpu, box, first].map(({ requests }) => requests.length)).toEqual([1, 1, 1])
})

test.each(['invalid_request', 'context_length', 'internal'] as const)(
  'no other model is tried after `%s`',
  async (code) => {
    const { llm, box } = await open({ gpu: failing(code) })

    await expect(ask(llm)).rejects.toMatchObject({ code })
    expect(box.requests).toEqual([])
  },
)

test('no other model is tried after the first event', async () => {
  const { llm, box } = await open({ gpu: ['Hel', new LlmError('upstream', 'The server is gone.')] })

  await expect(ask(llm)).rejects.toThrow('The server is gone.')
  expect(box.requests).toEqual([])
})

test('each API streams and returns the answer of the fallback, with the name that was asked for', async () => {
  const served = await serve(toOptions({ gpu: failing('upstream') }))

  for (const stream of [false, true])
    for (const { path, body } of chats) {
      const response = await served.post(path, { ...body, model: 'best', stream })
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(text).toContain('box')
      expect(text).toContain('"model":"best"')
    }
})

test('a model that does not exist is left out, also where nothing is generated', async () => {
  const { llm } = await open(
    { gpu: 'gpu' },
    { aliases: { best: ['gpu/none', 'box/a'], lost: ['gpu/none', 'none'] } },
  )

  expect((await llm.models.get('best')).name).toBe('box/a')
  expect(await ask(llm)).toBe('box')
  expect((await llm.embed({ model: 'best', inputs: ['a'] })).embeddings).toHaveLength(1)
  expect((await llm.models.aliases()).map(({ alias }) => alias)).toEqual(['best'])
  await expect(llm.models.get('lost')).rejects.toMatchObject({ code: 'not_found' })
})

test('embeddings have fallbacks, too', async () => {
  const options = toOptions({ gpu: 'gpu' })
  const gpu = { ...options.engines.gpu, embed: async () => Promise.reject(new LlmError('upstream', 'Away.')) }
  const llm = await createLlm({ ...options, engines: { ...options.engines, gpu } })
  onTestFinished(() => llm.close())

  expect((await llm.embed({ model: 'best', inputs: ['a'] })).embeddings).toHaveLength(1)
})

test('one call counts once, under the model that answered', async () => {
  const prices = { '*': { inputPerMillionUsd: 0, outputPerMillionUsd: 1_000 } }
  const { llm } = await open({ gpu: failing('upstream') }, { database: ':memory:', prices })
  const caller = {
    id: 'ann',
    limits: { requestsPerMinute: 5 },
    spendingLimit: { usd: 1, period: 'day' },
  } as const

  expect(await ask(llm.as(caller))).toBe('box')

  const rows = await llm.usage.calls()
  expect(rows.map(({ model, nanoUsd, status }) => [model, Number(nanoUsd), status])).toEqual([
    ['box/a', 1_000_000, 'ended'],
  ])
  const [requests] = (await llm.limits.of(caller)).filter(({ name }) => name === 'requests')
  expect(requests?.remaining).toBe(4)
})

test('a call whose models all fail counts once', async () => {
  const scripts = { gpu: failing('upstream'), box: failing('upstream'), first: failing('upstream') }
  const { llm } = await open(scripts, { database: ':memory:' })
  const caller = { id: 'ann', limits: { requestsPerMinute: 5 } } as const

  await expect(ask(llm.as(caller))).rejects.toThrow('It failed.')

  expect((await llm.usage.calls()).map(({ model, status }) => [model, status])).toEqual([
    ['tiny:latest', 'failed'],
  ])
  const [requests] = (await llm.limits.of(caller)).filter(({ name }) => name === 'requests')
  expect(requests?.remaining).toBe(4)
})

test('a caller gets no fallback that it may not use', async () => {
  const { llm, box } = await open({ gpu: failing('upstream') })
  const caller = llm.as({ id: 'ann', models: ['gpu/*'] })

  await expect(ask(caller)).rejects.toThrow('It failed.')
  expect(box.requests).toEqual([])
})

test('a call that its client has cancelled gets no fallback', async () => {
  const controller = new AbortController()
  const { llm, box } = await open({
    gpu: () => {
      controller.abort()
      return new LlmError('upstream', 'It failed.')
    },
  })

  await expect(llm.generate({ model: 'best', input }, { signal: controller.signal })).resolves.toBeDefined()
  expect(box.requests).toEqual([])
})

test('a full queue of one model leaves the call to the next one', async () => {
  let release: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const { llm, gpu } = await open(
    { gpu: () => held.then(() => 'gpu') },
    { maxAdmitted: 1, maxQueued: 0, auth: 'host' },
  )
  const running = ask(llm, 'gpu/a')
  await expect.poll(() => gpu.running).toBe(1)

  expect(await ask(llm)).toBe('box')
  release()
  expect(await running).toBe('gpu')
})

describe('weights', () => {
  test('models are drawn by their weights, and the others are fallbacks', async () => {
    const target = [
      { model: 'gpu/a', weight: 3 },
      { model: 'box/a', weight: 1 },
      { model: 'tiny', weight: 0 },
    ]
    const { llm, gpu, box, first } = await open({ gpu: 'gpu' }, { aliases: { best: target } })

    for (let call = 0; call < 200; call++) await ask(llm)

    // 150 of 200 on average, with a standard deviation of 6.
    expect(gpu.requests.length).toBeGreaterThan(110)
    expect(box.requests.length).toBeGreaterThan(10)
    expect(first.requests).toEqual([])
  })

  test('the others of a drawn model that fails are tried in order', async () => {
    const target = [
      { model: 'box/a', weight: 0 },
      { model: 'gpu/a', weight: 1 },
      { model: 'tiny', weight: 0 },
    ]
    const { llm } = await open({ gpu: failing('upstream') }, { aliases: { best: target } })

    expect(await ask(llm)).toBe('box')
  })
})

test.each([
  [[], "`aliases['best']` to have 1 to 16 models, got 0"],
  [['a', 'a:latest'], 'to have each model once'],
  [['a', 1], "`aliases['best'][1]` to be the name of a model, got 1"],
  [['a', 'b*'], "`aliases['best'][1]` to be the name of a model"],
  [['a', 'other'], "`aliases['best']` to be the name of a model, but 'other' is an alias, too"],
  [[{ model: 'a', weight: -1 }], "`aliases['best'][0].weight` to be a number from 0 to 1000000"],
  [[{ model: 'a', weight: 0 }], "`aliases['best']` to have a weight above 0"],
  [[{ model: 'a', weight: 1 }, 'b'], "`aliases['best'][1]` to be an object"],
  [[{ model: 'a', weight: 1, share: 1 }], "Unknown option `aliases['best'][0].share`"],
])('the target %j is rejected', async (target, message) => {
  const created = createLlm({ models: emptyFolder(), aliases: { best: target as never, other: 'c' } })

  await expect(created).rejects.toThrow(message)
})
