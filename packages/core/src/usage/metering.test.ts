import { afterEach, describe, expect, test } from 'vitest'
import type { Caller } from '../caller.ts'
import type { GenerateEvent } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import { createLlm, type Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { type ScriptedEngine, scriptedEngine } from '../testing/scripted-engine.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const live = (): AbortSignal => new AbortController().signal
const asked = (more: Partial<GenerateRequest> = {}): GenerateRequest => ({
  model: 'tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
  ...more,
})
const opened: Llm[] = []
afterEach(async () => {
  for (const llm of opened.splice(0)) await llm.close()
})

async function start(options: LlmOptions = {}): Promise<{ llm: Llm; engine: ScriptedEngine }> {
  const engine = (options.engine as ScriptedEngine | undefined) ?? scriptedEngine('one two three')
  const llm = await createLlm({ ...options, engine })
  opened.push(llm)
  return { llm, engine }
}

async function read(llm: Llm, caller: Caller, more: Partial<GenerateRequest> = {}, signal = live()) {
  const generation = await llm.generate(asked(more), { signal, caller })
  const events: GenerateEvent[] = []
  for await (const event of generation) events.push(event)
  return { generation, events }
}
const errorOf = (promise: Promise<unknown>): Promise<LlmError> =>
  promise.then(
    () => expect.fail('It was not refused.'),
    (cause: unknown) => LlmError.from(cause),
  )

describe('limits', () => {
  test('of a caller are taken before the engine is asked, and an answer says how they stood', async () => {
    const { llm, engine } = await start()
    const caller: Caller = { id: 'ann', limits: { requestsPerMinute: 2 } }

    const { generation } = await read(llm, caller)
    await read(llm, caller)
    const refusal = await errorOf(read(llm, caller))

    expect(generation.limits).toEqual([{ name: 'requests', limit: 2, remaining: 1, resetMs: 30_000 }])
    expect(refusal.code).toBe('rate_limit')
    expect(refusal.details.retryAfterMs).toBeGreaterThan(29_000)
    expect(engine.requests).toHaveLength(2)
  })

  test('of tokens are corrected to what the engine counted', async () => {
    const { llm } = await start()
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 2_000 } }

    // A thousand and some are reserved, four are used.
    await read(llm, caller)
    const { generation } = await read(llm, caller, { maxTokens: 1 })

    // Five for the text of this one, and one that it may say.
    expect(generation.limits).toMatchObject([{ name: 'tokens', remaining: 2_000 - 4 - 6 }])
  })

  test('of a tier hold where the caller has none of its own', async () => {
    const { llm } = await start({ tiers: { small: { requestsPerMinute: 1, concurrent: 5 } } })
    await read(llm, { id: 'ann', tier: 'small' })
    await read(llm, { id: 'bob', tier: 'small' })

    expect((await errorOf(read(llm, { id: 'ann', tier: 'small' }))).code).toBe('rate_limit')
    const { generation } = await read(llm, { id: 'zoe', tier: 'small', limits: { requestsPerMinute: 9 } })
    expect(generation.limits).toMatchObject([{ limit: 9 }])
  })

  test('of a tier that nobody knows are a mistake in the set-up, not no limits', async () => {
    const { llm } = await start()

    expect((await errorOf(read(llm, { id: 'ann', tier: 'gone' }))).message).toContain('"gone"')
  })

  test('of a model are of all its callers together, whichever way its name is written', async () => {
    const { llm } = await start({ limits: { models: { tiny: { requestsPerMinute: 2 } } } })
    await read(llm, { id: 'ann' })
    await read(llm, { id: 'bob' }, { model: 'tiny:latest' })

    expect((await errorOf(read(llm, { id: 'zoe' }, { model: 'Tiny' }))).code).toBe('rate_limit')
    await read(llm, { id: 'zoe' }, { model: 'other' })
  })

  test('let so many run at the same time, until these end, fail or are left', async () => {
    const failing = scriptedEngine((request) =>
      request.maxTokens === 1 ? new LlmError('upstream', 'It broke.') : 'one two',
    )
    const { llm } = await start({ engine: failing })
    const caller: Caller = { id: 'ann', limits: { concurrent: 1 } }
    const first = await llm.generate(asked(), { signal: live(), caller })
    expect((await errorOf(read(llm, caller))).code).toBe('rate_limit')

    await first[Symbol.asyncIterator]().return?.()
    await read(llm, caller)
    expect((await errorOf(read(llm, caller, { maxTokens: 1 }))).code).toBe('upstream')
    const left = new AbortController()
    await llm.generate(asked(), { signal: left.signal, caller })
    left.abort()
    await expect.poll(() => read(llm, caller).then(({ events }) => events.length)).toBe(4)
  })

  test('hold for vectors and ranks, too', async () => {
    const { llm } = await start()
    const caller: Caller = { id: 'ann', limits: { requestsPerMinute: 2 } }
    await llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller })
    await llm.rerank({ model: 'tiny', query: 'a', documents: ['a', 'b'] }, { caller })

    expect((await errorOf(llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller }))).code).toBe(
      'rate_limit',
    )
  })
})

describe('money', () => {
  const payer = (nanoUsd: number, more: Partial<Caller> = {}): Caller => ({
    id: 'ann',
    spendLimit: { nanoUsd, per: 'day' },
    ...more,
  })

  test('clamps an answer to what its caller can pay for', async () => {
    const { llm, engine } = await start({ database: ':memory:', prices })

    const { events } = await read(llm, payer(1_000 + 2 * 2_000))

    expect(engine.requests.at(-1)?.maxTokens).toBe(2)
    expect(events.at(-1)).toMatchObject({ reason: 'length', usage: { outputTokens: 2 } })
    expect(await llm.usage.calls()).toMatchObject([{ status: 'ended', nanoUsd: 5_000 }])
  })

  test('that is not there is refused before the engine is asked, and costs no limit and no row', async () => {
    const { llm, engine } = await start({ database: ':memory:', prices })
    const limits = { requestsPerMinute: 10 }

    expect((await errorOf(read(llm, payer(2_999, { limits }), { maxTokens: 1 }))).code).toBe('quota')
    const { generation } = await read(llm, payer(3_000, { limits }), { maxTokens: 1 })

    expect(generation.limits).toMatchObject([{ remaining: 9 }])
    expect(engine.requests).toHaveLength(1)
    expect(await llm.usage.calls()).toHaveLength(1)
  })

  test('who has nothing left makes no model count', async () => {
    const scripted = scriptedEngine('one')
    let counted = 0
    const engine = {
      ...scripted,
      countTokens: (...given: Parameters<typeof scripted.countTokens>) => {
        counted++
        return scripted.countTokens(...given)
      },
    }
    const llm = await createLlm({ engine, database: ':memory:', prices })
    opened.push(llm)
    await read(llm, payer(3_000), { maxTokens: 1 })

    expect((await errorOf(read(llm, payer(3_000), { maxTokens: 1 }))).code).toBe('quota')
    expect(counted).toBe(1)
  })

  test('of a caller needs a database, and nothing is let through without', async () => {
    const { llm, engine } = await start()

    await expect(read(llm, payer(1))).rejects.toThrow('`database`')
    expect(engine.requests).toHaveLength(0)
  })

  test('is charged for an answer that failed, for what was said before', async () => {
    const engine = scriptedEngine(['one ', 'two ', new LlmError('upstream', 'It broke.')])
    const { llm } = await start({ engine, database: ':memory:', prices })

    expect((await errorOf(read(llm, payer(1_000_000)))).code).toBe('upstream')

    expect(await llm.usage.calls()).toMatchObject([{ status: 'failed', nanoUsd: 5_000 }])
  })

  test('is charged for vectors by their tokens', async () => {
    const { llm } = await start({ database: ':memory:', prices })
    const caller = payer(1_000_000)

    await llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller, dialect: 'openai' })

    expect(await llm.usage.calls()).toMatchObject([
      { dialect: 'openai', tokens: { input: 5, output: 0 }, nanoUsd: 5_000, status: 'ended' },
    ])
  })

  test('is half of it for what is one of a batch', async () => {
    const { llm } = await start({ database: ':memory:', prices })

    for await (const _event of await llm.generate(asked(), {
      signal: live(),
      caller: payer(3_500),
      batch: true,
    }));

    expect(await llm.usage.calls()).toMatchObject([{ status: 'ended', nanoUsd: 3_500 }])
  })

  test('is of the id that the answer has', async () => {
    const { llm } = await start({ database: ':memory:', prices })

    const { generation } = await read(llm, { id: 'ann' })

    expect(await llm.usage.calls()).toMatchObject([{ id: generation.id, caller: 'ann' }])
  })
})

test('where too many wait, the caller with most of them hears it, and it costs nothing', async () => {
  const scripted = scriptedEngine('one two')
  let inside = 0
  let goOn: () => void = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const engine = {
    ...scripted,
    async *generate(...given: Parameters<typeof scripted.generate>) {
      inside++
      await gate
      yield* scripted.generate(...given)
    },
  }
  const llm = await createLlm({ engine, database: ':memory:', prices, limits: { queue: 2 } })
  opened.push(llm)

  const refused: LlmError[] = []
  const many = Array.from({ length: 67 }, () =>
    read(llm, { id: 'ann' }).catch((cause: unknown) => void refused.push(LlmError.from(cause))),
  )
  await expect.poll(() => [inside, refused.length]).toEqual([64, 1])
  const late = read(llm, { id: 'bob' })
  await expect.poll(() => refused.length).toBe(2)
  goOn()

  await Promise.all(many)
  expect(refused.map(({ code }) => code)).toEqual(['overloaded', 'overloaded'])
  expect(refused[0]?.details.retryAfterMs).toBeGreaterThanOrEqual(1_000)
  await late
  expect(await llm.usage.report({ by: 'key' })).toMatchObject([
    { group: 'ann', calls: 65 },
    { group: 'bob', calls: 1 },
  ])
})

test('without a database nothing is kept, and that is said to who asks', async () => {
  const { llm } = await start()

  await expect(llm.usage.report({ by: 'key' })).rejects.toThrow('`database`')
})

test.each([
  [{ prices: { tiny: { inputPerMillionUsd: 1 } } }, 'outputPerMillionUsd'],
  [{ prices: { tiny: { inputPerMillionUsd: -1, outputPerMillionUsd: 1 } } }, 'inputPerMillionUsd'],
  [{ tiers: { small: { requestsPerMinute: 0.5 } } }, 'requestsPerMinute'],
  [{ tiers: { small: { rpm: 1 } } }, 'rpm'],
  [{ limits: { queue: -1 } }, 'limits.queue'],
  [{ spendWarnings: { thresholds: [80] } }, 'spendWarnings.thresholds'],
])('a wrong option is named: %o', async (options, name) => {
  await expect(createLlm({ database: ':memory:', ...(options as LlmOptions) })).rejects.toThrow(name)
})
