import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { pacedEngine } from '../../../../test/support/paced-engine.ts'
import type { Caller } from '../accounts/auth/caller.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine } from '../engine/engine.ts'
import type { GenerateEvent } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import { internals, type Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { openDatabase } from '../storage/open.ts'
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

/** An engine whose answers of more than a token wait until the test allows their events. */
const slowEngine = (words: number) =>
  pacedEngine(scriptedEngine(Array<string>(words).fill('word ')), ({ maxTokens }) => maxTokens === undefined)

async function read(llm: Llm, caller: Caller, more: Partial<GenerateRequest> = {}, signal = live()) {
  const generation = await llm.generate(asked(more), { signal, caller })
  const events: GenerateEvent[] = []
  for await (const event of generation) events.push(event)
  return { generation, events }
}
const errorOf = (promise: Promise<unknown>): Promise<LlmError> =>
  promise.then(
    () => expect.fail('The call was not rejected.'),
    (cause: unknown) => LlmError.from(cause),
  )

test('the engine gets the tenant of the caller, and the weight of its tier', async () => {
  const scripted = scriptedEngine('Hello.')
  const seen: unknown[] = []
  const engine: Engine = {
    ...scripted,
    generate: (request, call) => {
      seen.push([call.tenant, call.weight])
      return scripted.generate(request, call)
    },
  }
  const { llm } = await start({ engine, tiers: { paid: { weight: 4 }, free: { requestsPerMinute: 9 } } })

  await read(llm, { id: 'ann' })
  await read(llm, { id: 'bob', tenant: 'team', tier: 'paid' })
  await read(llm, { id: 'cleo', tier: 'free' })

  expect(seen).toEqual([
    ['ann', 1],
    ['team', 4],
    ['cleo', 1],
  ])
})

describe('limits', () => {
  // The clock of the limits stands still, so that nothing is refilled between two calls.
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] })
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  test('of a caller apply before the engine is called, and the answer reports their status', async () => {
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

  test('of tokens are corrected to the usage that the engine reports', async () => {
    const { llm } = await start()
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 2_000 } }

    // The first call reserves 1,024 tokens and its estimated input, and uses 4.
    await read(llm, caller)
    const { generation } = await read(llm, caller, { maxTokens: 1 })

    // The second call reserves an estimate of 5 input tokens, and 1 output token.
    expect(generation.limits).toMatchObject([{ name: 'tokens', remaining: 2_000 - 4 - 6 }])
  })

  test('count tokens while an answer is generated, not only when it ends', async () => {
    const engine = slowEngine(3_000)
    const { llm } = await start({ engine })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 5_000 } }
    const left = async (): Promise<number> => {
      const { generation } = await read(llm, caller, { maxTokens: 0 })
      return generation.limits[0]?.remaining ?? 0
    }
    engine.allow(1)
    const long = (await llm.generate(asked(), { signal: live(), caller, stream: true }))[
      Symbol.asyncIterator
    ]()
    await long.next()
    const readOn = async (events: number): Promise<void> => {
      engine.allow(events)
      for (let count = 0; count < events; count++) await long.next()
    }
    await readOn(1_024)
    const before = await left()
    // The reservation has 5 input tokens, but the prompt has 1. So the fifth token exceeds the reservation.
    await readOn(5)
    const after = await left()
    await readOn(1_025)
    const later = await left()
    await long.return?.()

    // Each call of `left` uses 1 token and reserves 5. The bucket refills a little meanwhile.
    expect(before).toBeGreaterThan(5_000 - 1_029 - 20)
    expect(before - after).toBeGreaterThan(800)
    expect(before - after).toBeLessThanOrEqual(1_025 + 10)
    expect(after - later).toBeGreaterThan(800)
    expect(await left()).toBeGreaterThan(later + 500)
  })

  test('reject other calls while a long answer uses up the tokens, and are exact when it ends', async () => {
    const engine = slowEngine(3_000)
    const { llm } = await start({ engine })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 1_100 } }
    engine.allow(1_200)
    const long = (await llm.generate(asked(), { signal: live(), caller }))[Symbol.asyncIterator]()
    for (let count = 0; count < 1_200; count++) await long.next()

    const during = await errorOf(read(llm, caller, { maxTokens: 1 }))
    engine.allow(3_000)
    for (;;) if ((await long.next()).done) break
    const after = await errorOf(read(llm, caller, { maxTokens: 1 }))

    const waitMs = (missing: number): number => (missing / 1_100) * 60_000
    // The answer reserves 2 × 1,024 tokens and its input, and uses 3,001 tokens. Another call needs 6.
    expect(during.details.retryAfterMs).toBeGreaterThan(waitMs(2 * 1_024 - 1_100) - 5_000)
    expect(during.details.retryAfterMs).toBeLessThanOrEqual(Math.ceil(waitMs(2 * 1_024 + 6 - 1_100 + 6)))
    expect(after.details.retryAfterMs).toBeGreaterThan(waitMs(3_001 - 1_100) - 5_000)
    expect(after.details.retryAfterMs).toBeLessThanOrEqual(Math.ceil(waitMs(3_001 - 1_100 + 6)))
  })

  test('that are exhausted during an answer do not abort it, and are settled at its end', async () => {
    const database = `${await mkdtemp(join(tmpdir(), 'limits-'))}/limits.db`
    const beside = await openDatabase(database)
    const errors: unknown[] = []
    const engine = slowEngine(1_500)
    const { llm } = await start({
      engine,
      database,
      logger: { warn: () => {}, error: (details) => errors.push(details) },
    })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 5_000 } }
    engine.allow(1)
    const long = (await llm.generate(asked(), { signal: live(), caller }))[Symbol.asyncIterator]()
    await beside.query('ALTER TABLE modelmount_limits RENAME TO away')
    engine.allow(1_200)
    for (let count = 0; count < 1_200; count++) expect((await long.next()).done).toBe(false)
    await expect.poll(() => errors.length).toBe(1)
    await beside.query('ALTER TABLE away RENAME TO modelmount_limits')
    engine.allow(1_500)
    for (;;) if ((await long.next()).done) break

    const { generation } = await read(llm, caller, { maxTokens: 0 })

    const [{ remaining = 0 } = {}] = generation.limits
    expect(remaining).toBeGreaterThanOrEqual(5_000 - 1_501 - 5)
    expect(remaining).toBeLessThan(5_000 - 1_000)
    await beside.close()
  })

  test('of a tier apply unless the caller has its own', async () => {
    const { llm } = await start({ tiers: { small: { requestsPerMinute: 1, concurrent: 5 } } })
    await read(llm, { id: 'ann', tier: 'small' })
    await read(llm, { id: 'bob', tier: 'small' })

    expect((await errorOf(read(llm, { id: 'ann', tier: 'small' }))).code).toBe('rate_limit')
    const { generation } = await read(llm, { id: 'zoe', tier: 'small', limits: { requestsPerMinute: 9 } })
    expect(generation.limits).toMatchObject([{ limit: 9 }])
  })

  test('per day apply beside those per minute, and the error names the day', async () => {
    const { llm } = await start({ engine: scriptedEngine(Array<string>(300).fill('word ')) })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 100_000, tokensPerDay: 400 } }

    const { generation } = await read(llm, caller, { maxTokens: 300 })
    const refusal = await errorOf(read(llm, caller, { maxTokens: 300 }))

    expect(generation.limits).toMatchObject([
      { name: 'tokens', limit: 100_000 },
      { name: 'tokens', limit: 400, remaining: 95, windowMs: 86_400_000 },
    ])
    expect(refusal.message).toContain('limit of 400 tokens per day')
    // 99 of the 305 tokens are left. At 400 tokens per day, the others take 12.4 h.
    expect(refusal.details.retryAfterMs).toBeGreaterThan((206 / 400) * 86_400_000 - 60_000)
    expect(refusal.details.retryAfterMs).toBeLessThanOrEqual((206 / 400) * 86_400_000)
    expect(await llm.limits.of(caller)).toMatchObject([
      { limit: 100_000 },
      { limit: 400, remaining: 99, windowMs: 86_400_000 },
    ])
  })

  test('of one end user do not apply to the others, and those of the caller apply to all', async () => {
    const { llm } = await start()
    const caller: Caller = {
      id: 'ann',
      limits: { requestsPerMinute: 4, perEndUser: { requestsPerMinute: 1 } },
    }
    const chat = (endUser?: string, own = caller) =>
      llm.chat('Hi', { model: 'tiny', caller: own, ...(endUser !== undefined && { endUser }) })
    const embed = (endUser: string) => llm.embed({ model: 'tiny', inputs: ['Hi'] }, { caller, endUser })

    await chat('u1')
    const refusal = await errorOf(chat('u1'))
    await chat('u2')
    await embed('u3')
    expect((await errorOf(embed('u3'))).details.exceeded).toBe('requests')
    await chat('u1', { ...caller, id: 'bob' })
    await chat()
    const ofCaller = await errorOf(chat('u5'))

    expect(refusal.code).toBe('rate_limit')
    expect(refusal.message).toContain('limit of 1 request per minute per end user.')
    expect(refusal.details.retryAfterMs).toBeGreaterThan(59_000)
    expect(refusal.details.limits).toMatchObject([{ name: 'requests', limit: 1, remaining: 0 }])
    expect(ofCaller.message).toContain('limit of 4 requests per minute.')
  })

  test('of end users apply to calls without one together', async () => {
    const engine = slowEngine(3)
    const { llm } = await start({ engine, tiers: { app: { perEndUser: { concurrent: 1 } } } })
    const caller: Caller = { id: 'ann', tier: 'app' }
    engine.allow(1)
    const first = await llm.generate(asked(), { signal: live(), caller })

    const refusal = await errorOf(read(llm, caller))
    const other = await llm.generate(asked({ maxTokens: 1 }), { signal: live(), caller, endUser: 'u1' })
    await other[Symbol.asyncIterator]().return?.()
    engine.allow(10)
    await first[Symbol.asyncIterator]().return?.()

    expect(refusal.message).toContain('1 request at the same time for calls without an end user.')
    await read(llm, caller)
  })

  test('of output tokens shorten answers without a maximum, and reject a higher one at no cost', async () => {
    const { llm, engine } = await start()
    const caller: Caller = { id: 'ann', limits: { requestsPerMinute: 5, maxOutputTokens: 2 } }

    const refusal = await errorOf(read(llm, caller, { maxTokens: 3 }))
    const { events, generation } = await read(llm, caller)

    expect(refusal).toMatchObject({ code: 'invalid_request', details: { param: 'maxTokens' } })
    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([2])
    expect(events.at(-1)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 2 } })
    expect(generation.limits).toMatchObject([{ name: 'requests', remaining: 4 }])
  })

  test('of output tokens are divided equally between the prompts of one call', async () => {
    const { llm, engine } = await start({ engine: scriptedEngine('word '.repeat(9)) })
    const client = llm.as({ id: 'ann', limits: { maxOutputTokens: 7 } })

    const group = await client.generateGroup([asked(), asked(), asked()], { signal: live() })
    for (const answer of group.startInOrder()) for await (const _ of await answer);

    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([2, 2, 2])
  })

  test('of an unknown tier reject with a setup error', async () => {
    const { llm } = await start()

    expect((await errorOf(read(llm, { id: 'ann', tier: 'gone' }))).message).toContain('"gone"')
    expect((await errorOf(read(llm, { id: 'ann', tier: 'constructor' }))).code).toBe('internal')
  })

  test('of calls without tokens have separate buckets, by kind and caller', async () => {
    const { llm } = await start({ tiers: { small: { requestsPerMinute: 1, concurrent: 1 } } })
    const ann: Caller = { id: 'ann', tier: 'small' }
    await read(llm, ann)

    const bob: Caller = { ...ann, id: 'bob' }
    const count = (caller: Caller) => llm.countTokens(asked(), { caller })
    const counting = llm.as(ann)
    await counting.countTokens(asked())
    expect(counting.limitStatus()).toMatchObject([{ name: 'requests', limit: 1, remaining: 0 }])
    const refusal = await errorOf(count(ann))
    expect(refusal.code).toBe('rate_limit')
    expect(refusal.details.retryAfterMs).toBeGreaterThan(59_000)
    expect((await errorOf(llm.render(asked(), { caller: ann }))).code).toBe('rate_limit')
    await llm[internals].clientOf(ann, { dialect: 'admin' }).admitRequest('admin')
    await count(bob)
    const unlimited = llm.as({ id: 'zoe' })
    await unlimited.countTokens(asked())
    expect(unlimited.limitStatus()).toEqual([])
    expect((await errorOf(count({ id: 'ann', tier: 'gone' }))).code).toBe('internal')
  })

  test('of a model are shared by all callers, for each spelling of its name', async () => {
    const { llm } = await start({ modelLimits: { tiny: { requestsPerMinute: 2 } } })
    await read(llm, { id: 'ann' })
    await read(llm, { id: 'bob' }, { model: 'tiny:latest' })

    expect((await errorOf(read(llm, { id: 'zoe' }, { model: 'Tiny' }))).code).toBe('rate_limit')
    await read(llm, { id: 'zoe' }, { model: 'other' })
  })

  test('of concurrent calls apply until the calls end, fail or are aborted', async () => {
    const failing = scriptedEngine((request) =>
      request.maxTokens === 1 ? new LlmError('upstream', 'It broke.') : 'one two',
    )
    const engine = pacedEngine(failing, ({ maxTokens }) => maxTokens === 9)
    const { llm } = await start({ engine })
    const caller: Caller = { id: 'ann', limits: { concurrent: 1 } }
    engine.allow(1)
    const first = await llm.generate(asked({ maxTokens: 9 }), { signal: live(), caller })
    expect((await errorOf(read(llm, caller))).code).toBe('rate_limit')

    engine.allow(3)
    for await (const _event of first);
    await read(llm, caller)
    expect((await errorOf(read(llm, caller, { maxTokens: 1 }))).code).toBe('upstream')
    const left = new AbortController()
    engine.allow(1)
    await llm.generate(asked({ maxTokens: 9 }), { signal: left.signal, caller })
    left.abort()
    await expect.poll(() => read(llm, caller).then(({ events }) => events.length)).toBe(4)
  })

  test('an aborted call does not reach the engine', async () => {
    const scripted = scriptedEngine('one')
    let asked = 0
    const embed: typeof scripted.embed = (...given) => {
      asked++
      return scripted.embed(...given)
    }
    const { llm } = await start({ engine: { ...scripted, embed }, database: ':memory:' })
    const signal = AbortSignal.abort()

    const left = llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller: { id: 'ann' }, signal })

    await expect(left).rejects.toMatchObject({ name: 'AbortError' })
    expect(asked).toBe(0)
  })

  test('of tokens estimate non-Latin text by its bytes', async () => {
    const { llm } = await start()
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 1_000 } }
    const text = '狐'.repeat(400)

    const { limits } = await llm.embed({ model: 'tiny', inputs: [text] }, { caller })

    expect(limits).toMatchObject([{ name: 'tokens', remaining: 1_000 - 300 - 4 }])
  })

  test('apply to embeddings and reranking, by requests and input tokens', async () => {
    const { llm } = await start()
    const caller: Caller = { id: 'ann', limits: { requestsPerMinute: 2, tokensPerMinute: 1_000 } }
    await llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller })
    const ranked = await llm.rerank({ model: 'tiny', query: 'a', documents: ['a', 'b'] }, { caller })

    // The first call uses 5 tokens. The second call has two texts of two letters, estimated as 9 tokens.
    const [, { remaining = 0 } = {}] = ranked.limits
    expect(remaining).toBeGreaterThanOrEqual(1_000 - 5 - 9)
    expect(remaining).toBeLessThan(1_000 - 5)

    expect((await errorOf(llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller }))).code).toBe(
      'rate_limit',
    )
  })
})

describe('spending', () => {
  const payer = (nanoUsd: number, more: Partial<Caller> = {}): Caller => ({
    id: 'ann',
    spendingLimit: { usd: nanoUsd / 1e9, period: 'day' },
    ...more,
  })

  test('counts the prompt of several answers once', async () => {
    const { llm } = await start({ database: ':memory:', prices })
    await read(llm, { id: 'ann' })
    const group = await llm
      .as({ id: 'bob' })
      .generateGroup([asked(), asked(), asked()], { answersPerPrompt: 3 })

    for (const answer of group.startInOrder()) for await (const _ of await answer);

    const [several, alone] = (await llm.usage.calls()).map(({ nanoUsd }) => nanoUsd ?? 0)
    const outputTokens = 3
    expect(alone).toBeGreaterThan(outputTokens * 2_000)
    expect((several ?? 0) - (alone ?? 0)).toBe(2 * outputTokens * 2_000)
  })

  test("of a caller with little credit limits the answer's tokens", async () => {
    const { llm, engine } = await start({ database: ':memory:', prices })

    const { events } = await read(llm, payer(1_000 + 2 * 2_000))

    expect(engine.requests.at(-1)?.maxTokens).toBe(2)
    expect(events.at(-1)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 2 } })
    expect(await llm.usage.calls()).toMatchObject([{ status: 'ended', nanoUsd: 5_000 }])
  })

  test('with a maximum of output tokens of the caller needs credit for one token only, as without a maximum', async () => {
    const { llm, engine } = await start({ database: ':memory:', prices })
    const limits = { maxOutputTokens: 100 }

    await read(llm, payer(1_000 + 2 * 2_000, { limits }))
    await read(llm, payer(1e9, { limits: { maxOutputTokens: 3 } }))
    const refusal = await errorOf(read(llm, payer(30_000, { limits }), { maxTokens: 50 }))

    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([2, 3])
    expect(refusal.code).toBe('quota')
  })

  test('limits do not shorten an answer to a truncated conversation', async () => {
    const engine = scriptedEngine('word '.repeat(9), { contextSize: 6 })
    const { llm } = await start({ engine, database: ':memory:', prices })
    const messages = Array.from(
      { length: 20 },
      () => ({ role: 'user', content: [{ type: 'text', text: 'Hi' }] }) as const,
    )
    const long = { input: { kind: 'chat', messages }, overflow: 'truncate' } as const

    await read(llm, payer(1e9), { ...long, maxTokens: 4 })
    await read(llm, payer(1e9), long)

    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([4, 6])
  })

  test('for answers without a maximum is reserved for one context only, so that several run at once', async () => {
    const { llm } = await start({
      database: ':memory:',
      prices,
      engine: scriptedEngine('one two', { delayMs: 1 }),
    })

    const both = await Promise.all([read(llm, payer(1e9)), read(llm, payer(1e9))])

    expect(both.map(({ events }) => events.at(-1)?.type)).toEqual(['end', 'end'])
  })

  test('is charged for whole tokens, even if an engine reports fractions', async () => {
    const scripted = scriptedEngine('one two')
    const engine: typeof scripted = {
      ...scripted,
      async *generate(...given) {
        for await (const event of scripted.generate(...given))
          yield event.type === 'end' ? { ...event, usage: { ...event.usage, outputTokens: 12.5 } } : event
      },
    }
    const { llm } = await start({ engine, database: ':memory:', prices })

    await read(llm, payer(1e9))

    expect(await llm.usage.calls()).toMatchObject([{ tokens: { output: 13 }, nanoUsd: 27_000 }])
  })

  test('of a call that fails before its answer begins is a row without tokens, and the call counts as a request', async () => {
    const { llm } = await start({
      engine: scriptedEngine(new LlmError('upstream', 'It broke.')),
      database: ':memory:',
      prices,
    })
    const limits = { requestsPerMinute: 1 }

    expect((await errorOf(read(llm, payer(1e9, { limits }), {}))).code).toBe('upstream')

    expect(await llm.usage.calls()).toMatchObject([
      { status: 'failed', nanoUsd: 0, tokens: { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 } },
    ])
    expect((await errorOf(read(llm, payer(1e9, { limits })))).code).toBe('rate_limit')
  })

  test('is estimated for admitted calls only, not for queued calls', async () => {
    const scripted = scriptedEngine('one two')
    let counting = 0
    let most = 0
    let goOn: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const engine: typeof scripted = {
      ...scripted,
      countTokens: async (...given) => {
        most = Math.max(most, ++counting)
        await gate
        counting--
        return scripted.countTokens(...given)
      },
    }
    const { llm } = await start({ engine, database: ':memory:', prices, maxQueued: 0 })

    const refused: string[] = []
    const all = Array.from({ length: 100 }, () =>
      read(llm, payer(1e9)).catch((cause: unknown) => void refused.push(LlmError.from(cause).code)),
    )
    await expect.poll(() => [counting, refused.length]).toEqual([64, 36])
    goOn()
    await Promise.all(all)

    expect(most).toBe(64)
    expect(new Set(refused)).toEqual(new Set(['overloaded']))
    expect(await llm.usage.report({ by: 'key' })).toMatchObject([{ calls: 64 }])
  })

  test('of running calls is charged when the app closes, and their reservations are released', async () => {
    const database = `${await mkdtemp(join(tmpdir(), 'closing-'))}/usage.db`
    const errors: unknown[] = []
    const logger = { warn: () => {}, error: (details: object) => errors.push(details) }
    const engine = scriptedEngine(Array<string>(50).fill('word '))
    const llm = await createLlm({ engine, database, prices, logger })
    const caller = payer(1e9, { limits: { concurrent: 1, tokensPerMinute: 10_000 } })
    const running = (await llm.generate(asked(), { signal: live(), caller }))[Symbol.asyncIterator]()
    for (let count = 0; count < 6; count++) await running.next()
    await new Promise(setImmediate)

    await llm.close()

    expect((await errorOf(running.next())).code).toBe('upstream')
    expect((await errorOf(read(llm, caller))).code).toBe('overloaded')
    expect(errors).toEqual([])
    const { llm: later } = await start({ database, prices })
    expect(await later.usage.calls()).toMatchObject([
      { status: 'aborted', nanoUsd: 1_000 + 5 * 2_000, undeliveredTokens: 45 },
    ])
    const beside = await openDatabase(database)
    for (const table of ['modelmount_funds', 'modelmount_limit_leases'])
      expect(await beside.query(`SELECT * FROM ${table}`)).toEqual([])
    await beside.close()
  })

  test('above the credit rejects before the engine is called, and leaves no request and no row', async () => {
    const { llm, engine } = await start({ database: ':memory:', prices })
    const limits = { requestsPerMinute: 10 }

    expect((await errorOf(read(llm, payer(2_999, { limits }), { maxTokens: 1 }))).code).toBe('quota')
    const { generation } = await read(llm, payer(3_000, { limits }), { maxTokens: 1 })

    expect(generation.limits).toMatchObject([{ remaining: 9 }])
    expect(engine.requests).toHaveLength(1)
    expect(await llm.usage.calls()).toHaveLength(1)
  })

  test('without credit, no model counts the prompt', async () => {
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

  test('counts the prompt by the input object of the answer, which no other call has', async () => {
    const scripted = scriptedEngine('one')
    const counted: unknown[] = []
    const answered: unknown[] = []
    const engine: typeof scripted = {
      ...scripted,
      countTokens: (request, call) => {
        counted.push(request.input)
        return scripted.countTokens(request, call)
      },
      generate: (request, call) => {
        answered.push(request.input)
        return scripted.generate(request, call)
      },
    }
    const { llm } = await start({ engine, database: ':memory:', prices })
    const input = { kind: 'text', prompt: ['Hi'], template: false } as const

    await read(llm, payer(1e9, { limits: { maxOutputTokens: 9 } }), { input })
    await read(llm, payer(1e9), { input, maxTokens: 1 })

    expect(counted).toHaveLength(2)
    expect(counted.map((one, index) => one === answered[index])).toEqual([true, true])
    expect(new Set([input, ...answered]).size).toBe(3)
  })

  test('limits of a caller need a database, and calls are rejected without one', async () => {
    const { llm, engine } = await start()

    await expect(read(llm, payer(1))).rejects.toThrow('`database`')
    expect(engine.requests).toHaveLength(0)
  })

  test('includes the output of an answer that failed', async () => {
    const engine = scriptedEngine(['one ', 'two ', new LlmError('upstream', 'It broke.')])
    const { llm } = await start({ engine, database: ':memory:', prices })

    expect((await errorOf(read(llm, payer(1_000_000)))).code).toBe('upstream')

    expect(await llm.usage.calls()).toMatchObject([{ status: 'failed', nanoUsd: 5_000 }])
  })

  test('on embeddings is charged by their tokens', async () => {
    const { llm } = await start({ database: ':memory:', prices })
    const caller = payer(1_000_000)

    await llm.embed({ model: 'tiny', inputs: ['Hello'] }, { caller, dialect: 'openai' })

    expect(await llm.usage.calls()).toMatchObject([
      { dialect: 'openai', tokens: { input: 5, output: 0 }, nanoUsd: 5_000, status: 'ended' },
    ])
  })

  test('on reranking is charged by its tokens', async () => {
    const { llm } = await start({ database: ':memory:', prices })

    await llm.rerank({ model: 'tiny', query: 'a', documents: ['a', 'b'] }, { caller: payer(1_000_000) })

    expect(await llm.usage.calls()).toMatchObject([
      { caller: 'ann', tokens: { input: 4, output: 0 }, nanoUsd: 4_000, status: 'ended' },
    ])
  })

  test('is recorded under the id of the response', async () => {
    const { llm } = await start({ database: ':memory:', prices })

    const { generation } = await read(llm, { id: 'ann' })

    expect(await llm.usage.calls()).toMatchObject([{ id: generation.id, caller: 'ann' }])
  })
})

test('a full queue rejects the caller with the most queued calls, at no cost', async () => {
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
  const llm = await createLlm({ engine, database: ':memory:', prices, maxQueued: 2 })
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

test('without a database, usage reports reject with the missing option', async () => {
  const { llm } = await start()

  await expect(llm.usage.report({ by: 'key' })).rejects.toThrow('`database`')
})

test.each([
  [{ prices: { tiny: { inputPerMillionUsd: 1 } } }, 'outputPerMillionUsd'],
  [{ prices: { tiny: { inputPerMillionUsd: -1, outputPerMillionUsd: 1 } } }, 'inputPerMillionUsd'],
  [{ tiers: { small: { requestsPerMinute: 0.5 } } }, 'requestsPerMinute'],
  [{ tiers: { small: { rpm: 1 } } }, 'rpm'],
  [
    { tiers: { small: { tokensPerDay: 1e8 + 1 } } },
    "`tiers['small'].tokensPerDay` to be a whole number from 1 to 100000000",
  ],
  [
    { tiers: { small: { maxOutputTokens: 0 } } },
    "`tiers['small'].maxOutputTokens` to be a whole number from 1",
  ],
  [{ tiers: { small: { perEndUser: { rpm: 1 } } } }, "Unknown option `tiers['small'].perEndUser.rpm`"],
  [
    { tiers: { small: { perEndUser: { tokensPerDay: 1 } } } },
    "Unknown option `tiers['small'].perEndUser.tokensPerDay`",
  ],
  [
    { tiers: { small: { perEndUser: { concurrent: 1.5 } } } },
    "`tiers['small'].perEndUser.concurrent` to be a whole number",
  ],
  [{ modelLimits: { tiny: { maxOutputTokens: 1 } } }, "Unknown option `modelLimits['tiny'].maxOutputTokens`"],
  [{ tiers: null }, 'Expected `tiers` to be an object, got null'],
  [{ tiers: { small: null } }, "Expected `tiers['small']` to be an object, got null"],
  [{ prices: [] }, 'Expected `prices` to be an object, got []'],
  [{ prices: { tiny: null } }, "Expected `prices['tiny']` to be an object, got null"],
  [{ modelLimits: { tiny: 5 } }, "Expected `modelLimits['tiny']` to be an object, got 5 (number)"],
  [{ tiers: { small: { weight: 0 } } }, "tiers['small'].weight"],
  [{ tiers: { small: { weight: 1.5 } } }, "tiers['small'].weight"],
  [{ tiers: { small: { weight: 11 } } }, "tiers['small'].weight"],
  [{ maxQueued: -1 }, '`maxQueued` to be a whole number from 0 to 1000000'],
  [{ modelLimits: { tiny: { rpm: 1 } } }, 'rpm'],
  [{ limits: { models: {}, queue: 2 } }, 'Unknown option `limits`'],
  [{ spendWarnings: {} }, 'Unknown option `spendWarnings`'],
  [{ usage: { keepDays: 1 } }, 'expected one of: usage.retentionDays'],
  [{ spendingWarnings: { thresholds: [80] } }, 'spendingWarnings.thresholds'],
])('the error names the invalid option: %o', async (options, name) => {
  await expect(createLlm({ database: ':memory:', ...(options as LlmOptions) })).rejects.toThrow(name)
})
