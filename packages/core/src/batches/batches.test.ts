import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine } from '../engine/engine.ts'
import { LlmError } from '../errors.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import type { Batch } from './batch.ts'
import type { BatchQuery } from './batch-actions.ts'

const prices = { '*': { inputPerMillionUsd: 10, outputPerMillionUsd: 30 } }
const ann = { id: 'ann', tenant: 'acme' }
const ben = { id: 'ben' }

const ask = (id: string, text = 'Hello', more: object = {}) => ({
  custom_id: id,
  params: { model: 'tiny', max_tokens: 10, messages: [{ role: 'user', content: text }], ...more },
})

const ended = (llm: Llm, { id }: Batch): Promise<Batch> => llm.batches.waitUntilEnded(id)

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

const outcomes = async (llm: Llm, { id }: Batch) =>
  Object.fromEntries(
    (await collect(llm.batches.results(id))).map(({ customId, outcome }) => [customId, outcome]),
  )

/** An engine whose answers wait until `open()`. */
function gatedEngine() {
  const scripted = scriptedEngine('one two three')
  let open = (): void => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  let inside = 0
  const engine: Engine = {
    ...scripted,
    async *generate(request, call) {
      inside++
      await Promise.race([gate, new Promise((resolve) => call.signal.addEventListener('abort', resolve))])
      if (call.signal.aborted) return
      yield* scripted.generate(request, call)
    },
  }
  return { engine, open, inside: () => inside }
}

async function untilInside(inside: () => number, count: number) {
  while (inside() < count) await delay(5)
}

describe.each(databases())('batches in $name', ({ fresh }) => {
  async function open(options: LlmOptions = {}, database?: string) {
    const engine = options.engine ?? scriptedEngine('one two three')
    const llm = await createLlm({
      database: database ?? (await fresh()),
      models: [],
      prices,
      ...options,
      engine,
    })
    onTestFinished(() => llm.close())
    return llm
  }

  test('are listed for the app with their owner, their models and by status', async () => {
    const { engine, open: openGate } = gatedEngine()
    const llm = await open({ engine })
    const { key } = await llm.keys.create({ name: 'laptop', tenant: 'acme' })
    const caller = { id: key.id, tenant: 'acme', key: { id: key.id, name: 'laptop' } }
    const [first, second, third] = [
      await llm.batches.create([ask('a'), ask('b', 'Hi', { model: 'other' }), ask('c')], { caller }),
      await llm.batches.create([ask('a')], { caller: ben }),
      await llm.batches.create([ask('a')]),
    ] as const
    const idsOf = async (query: BatchQuery) => (await llm.batches.list(query)).batches.map(({ id }) => id)

    const { batches } = await llm.batches.list()
    const found = Object.fromEntries(batches.map(({ id, owner, models }) => [id, { owner, models }]))
    expect(found).toEqual({
      [first.id]: { owner: { tenant: 'acme', caller: key.id, key: caller.key }, models: ['tiny', 'other'] },
      [second.id]: { owner: { tenant: 'ben', caller: 'ben' }, models: ['tiny'] },
      [third.id]: { owner: { tenant: '' }, models: ['tiny'] },
    })
    expect(await llm.as(ben).batches.get(second.id)).not.toHaveProperty('owner')

    await llm.batches.cancel(second.id)
    openGate()
    for (const batch of [first, second, third]) await ended(llm, batch)
    expect(await idsOf({ status: 'in_progress' })).toEqual([])
    const page = await idsOf({ status: 'ended', limit: 2 })
    expect(new Set([...page, ...(await idsOf({ status: 'ended', after: page[1] }))]).size).toBe(3)
  })

  test('run to their end, and keep the order of their requests in the results', async () => {
    const llm = await open()
    const ids = Array.from({ length: 30 }, (_, index) => `item-${index}`)

    const created = await llm.batches.create(
      ids.map((id) => ask(id, id)),
      { caller: ann },
    )

    expect(created).toMatchObject({ format: 'anthropic', endpoint: '/v1/messages', status: 'in_progress' })
    expect(created.counts).toEqual({ processing: 30, succeeded: 0, errored: 0, canceled: 0, expired: 0 })
    const batch = await ended(llm, created)
    expect(batch).toMatchObject({ id: created.id, status: 'ended', endedAt: expect.any(Date) })
    expect(batch.counts).toEqual({ processing: 0, succeeded: 30, errored: 0, canceled: 0, expired: 0 })
    const results = await collect(llm.batches.results(batch.id))
    expect(results.map(({ customId }) => customId)).toEqual(ids)
    expect(results[0]?.line).toMatchObject({
      custom_id: 'item-0',
      result: {
        type: 'succeeded',
        message: {
          type: 'message',
          content: [{ type: 'text', text: 'one two three' }],
          usage: { service_tier: 'batch', output_tokens: 3 },
        },
      },
    })
  })

  test('cost half the price, and are separate in reports', async () => {
    const llm = await open()
    const { signal } = new AbortController()
    const request = {
      model: 'tiny',
      input: {
        kind: 'chat' as const,
        messages: [{ role: 'user', content: [{ type: 'text' as const, text: 'Hello' }] }],
      },
    }
    for await (const _ of await llm.generate(request, { signal, caller: ann }));

    await ended(llm, await llm.batches.create([ask('a'), ask('b')], { caller: ann }))

    const calls = await llm.usage.calls()
    const [direct] = calls.filter(({ isBatch }) => !isBatch)
    const items = calls.filter(({ isBatch }) => isBatch)
    expect(items).toHaveLength(2)
    for (const item of items)
      expect(item).toMatchObject({
        ...{ caller: 'ann', tenant: 'acme', dialect: 'anthropic', status: 'ended' },
        nanoUsd: (direct?.nanoUsd ?? 0) / 2,
      })
    expect(await llm.usage.report({ by: 'tenant' })).toMatchObject([
      {
        group: 'acme',
        calls: 3,
        nanoUsd: BigInt(2 * (direct?.nanoUsd ?? 0)),
        batch: { calls: 2, nanoUsd: BigInt(direct?.nanoUsd ?? 0), tokens: { output: 6 } },
      },
    ])
  })

  test('an invalid request ends as an error of its own, and costs nothing', async () => {
    const llm = await open()

    const batch = await ended(
      llm,
      await llm.batches.create([
        ask('good'),
        ask('no-tokens', 'Hello', { max_tokens: undefined }),
        ask('stream', 'Hello', { stream: true }),
        ask('infinite', 'Hello', { temperature: Number.POSITIVE_INFINITY }),
      ]),
    )

    expect(batch.counts).toMatchObject({ succeeded: 1, errored: 3 })
    const [, noTokens, stream] = await collect(llm.batches.results(batch.id))
    expect(noTokens).toMatchObject({
      outcome: 'errored',
      line: {
        result: {
          type: 'errored',
          error: {
            type: 'error',
            error: { type: 'invalid_request_error', message: 'max_tokens: Field required' },
            request_id: expect.stringMatching(/^req_/),
          },
        },
      },
    })
    expect(stream?.line).toMatchObject({
      result: { error: { error: { message: 'stream: A request of a batch cannot be streamed.' } } },
    })
    expect(await llm.usage.calls()).toHaveLength(1)
  })

  test.each([
    ['an id twice', [ask('a'), ask('b'), ask('a')], /^requests\.2\.custom_id: 'a'/],
    ['an invalid id', [ask('a'), ask('b c')], /^requests\.1\.custom_id: String should match pattern/],
    ['no params', [{ custom_id: 'a' }], /^requests\.0\.params: Field required/],
    ['a text', ['hello'], /requests\.0/],
    ['no requests', [], /^requests: Expected at least one request/],
  ])('with %s are rejected as a whole', async (_what, requests, message) => {
    const llm = await open()

    await expect(llm.batches.create(requests)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(message),
    })

    expect((await llm.batches.list()).batches).toEqual([])
  })

  test('are visible to their tenant only', async () => {
    const llm = await open()
    const batch = await ended(llm, await llm.batches.create([ask('a')], { caller: ann }))

    const colleague = llm.as({ id: 'amy', tenant: 'acme' }).batches
    const stranger = llm.as(ben).batches

    expect((await colleague.get(batch.id)).id).toBe(batch.id)
    expect((await colleague.list()).batches).toHaveLength(1)
    expect((await stranger.list()).batches).toEqual([])
    for (const attempt of [
      () => stranger.get(batch.id),
      () => stranger.cancel(batch.id),
      () => stranger.delete(batch.id),
      () => stranger.resultLines(batch.id),
      () => stranger.get("' OR 1=1 --"),
      () => stranger.get('../../etc/passwd\0'),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'not_found' })
  })

  test('have pages in both directions', async () => {
    const llm = await open()
    const ids: string[] = []
    for (let index = 0; index < 5; index++) {
      ids.unshift((await llm.batches.create([ask('a')])).id)
      await delay(2)
    }
    const idsOf = async (query: object) => {
      const { batches, hasMore } = await llm.batches.list(query)
      return [batches.map(({ id }) => ids.indexOf(id)), hasMore]
    }

    expect(await idsOf({ limit: 2 })).toEqual([[0, 1], true])
    expect(await idsOf({ limit: 2, after: ids[1] })).toEqual([[2, 3], true])
    expect(await idsOf({ limit: 2, after: ids[3] })).toEqual([[4], false])
    expect(await idsOf({ limit: 2, before: ids[3] })).toEqual([[1, 2], true])
    expect(await idsOf({ limit: 2, before: ids[1] })).toEqual([[0], false])
    expect(await idsOf({ after: 'msgbatch_unknown' })).toEqual([[], false])
  })

  describe('while they run', () => {
    test('can be canceled: running requests end, and others do not run', async () => {
      const { engine, open: openGate, inside } = gatedEngine()
      const llm = await open({ engine, batches: { concurrency: 2 } })
      const created = await llm.batches.create(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ask(id)))
      await untilInside(inside, 2)

      const canceled = await llm.batches.cancel(created.id)
      expect(canceled).toMatchObject({ status: 'canceling', cancelRequestedAt: expect.any(Date) })
      expect(await llm.batches.cancel(created.id)).toMatchObject({ status: 'canceling' })
      await expect(llm.batches.delete(created.id)).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(collect(llm.batches.results(created.id))).rejects.toMatchObject({
        code: 'invalid_request',
      })
      openGate()

      const batch = await ended(llm, created)
      expect(batch.counts.succeeded).toBeGreaterThanOrEqual(2)
      expect(batch.counts.succeeded + batch.counts.canceled).toBe(6)
      expect(batch.counts.canceled).toBeGreaterThanOrEqual(2)
      const canceledLine = (await collect(llm.batches.results(batch.id))).find(
        ({ outcome }) => outcome === 'canceled',
      )
      expect(canceledLine?.line).toMatchObject({ result: { type: 'canceled' } })
      expect(await llm.batches.cancel(batch.id)).toMatchObject({ status: 'ended' })
      await llm.batches.delete(batch.id)
      await expect(llm.batches.get(batch.id)).rejects.toMatchObject({ code: 'not_found' })
    })

    test('continue after the app has closed, and no request is lost or charged twice', async () => {
      const database = await fresh()
      const { engine, inside } = gatedEngine()
      const first = await open({ engine, batches: { concurrency: 2 } }, database)
      const created = await first.batches.create(['a', 'b', 'c'].map((id) => ask(id)))
      await untilInside(inside, 2)
      await first.close()

      const second = await open({}, database)

      expect((await ended(second, created)).counts).toMatchObject({ succeeded: 3 })
      expect(await second.usage.calls()).toHaveLength(3)
    })
  })

  test('expire: requests that have not begun do not run', async () => {
    const failing = scriptedEngine('one')
    const engine: Engine = {
      ...failing,
      // biome-ignore lint/correctness/useYield: it fails before its first event
      async *generate() {
        throw new LlmError('overloaded', 'Busy.', { retryAfterMs: 60_000 })
      },
    }
    const llm = await open({ engine, batches: { expiresAfter: '1s' } })

    const batch = await ended(llm, await llm.batches.create([ask('a'), ask('b')]))

    expect(batch.counts).toMatchObject({ expired: 2 })
    expect(await outcomes(llm, batch)).toEqual({ a: 'expired', b: 'expired' })
  })

  test('try a request again after a crash of the model, and give up after three', async () => {
    const scripted = scriptedEngine('one')
    const crashes = new Map<string, number>()
    const engine: Engine = {
      ...scripted,
      async *generate(request, call) {
        const text = JSON.stringify(request.input)
        const limit = text.includes('always') ? 99 : text.includes('twice') ? 2 : 0
        const count = crashes.get(text) ?? 0
        crashes.set(text, count + 1)
        if (count < limit)
          throw new LlmError('upstream', 'The model process ended.', {
            ...{ processEnded: true, retryAfterMs: 1 },
          })
        yield* scripted.generate(request, call)
      },
    }
    const llm = await open({ engine })

    const batch = await ended(
      llm,
      await llm.batches.create([ask('a', 'twice'), ask('b', 'always'), ask('c')]),
    )

    expect(await outcomes(llm, batch)).toEqual({ a: 'succeeded', b: 'errored', c: 'succeeded' })
    expect([...crashes.values()].sort()).toEqual([1, 3, 3])
  })

  test('a request beside one that crashes the model runs again, and its crashes do not add up', async () => {
    const scripted = scriptedEngine('one')
    let running = 0
    const engine: Engine = {
      ...scripted,
      async *generate(request, call) {
        running++
        try {
          await delay(5)
          // The crash ends all requests that run.
          if (JSON.stringify(request.input).includes('poison')) {
            crashed = new LlmError('upstream', 'The model process ended.', { processEnded: true })
            await delay(5)
            const error = crashed
            crashed = undefined
            throw error
          }
          for (let wait = 0; wait < 4; wait++) {
            if (crashed) throw crashed
            await delay(3)
          }
          yield* scripted.generate(request, call)
        } finally {
          running--
        }
      },
    }
    let crashed: LlmError | undefined
    const llm = await open({ engine, batches: { concurrency: 4 } })

    const batch = await ended(
      llm,
      await llm.batches.create([ask('a'), ask('b', 'poison'), ask('c'), ask('d')]),
    )

    expect(batch.counts).toMatchObject({ succeeded: 3, errored: 1 })
    expect(await outcomes(llm, batch)).toMatchObject({ b: 'errored' })
    expect(running).toBe(0)
  })

  test('wait for a model that cannot be started, and are no errors', async () => {
    const scripted = scriptedEngine('one')
    let attempts = 0
    const engine: Engine = {
      ...scripted,
      async *generate(request, call) {
        // One more than a request that crashes the model gets.
        if (++attempts <= 4)
          throw new LlmError('upstream', 'The file crashed the engine.', { retryAfterMs: 10 })
        yield* scripted.generate(request, call)
      },
    }
    const llm = await open({ engine })

    const created = await llm.batches.create([ask('a')])

    expect((await ended(llm, created)).counts).toMatchObject({ succeeded: 1 })
  })

  test('end with a clear error what the spending limit does not pay for', async () => {
    const llm = await open()
    // An item costs at most 4 tokens of input and 10 of output, and in fact 3 of output.
    const caller = { ...ann, spendingLimit: { usd: 0.0005, period: 'lifetime' as const } }

    const batch = await ended(
      llm,
      await llm.batches.create(
        Array.from({ length: 20 }, (_, index) => ask(`i${index}`)),
        { caller },
      ),
    )

    expect(batch.counts.succeeded).toBeGreaterThan(0)
    expect(batch.counts.errored).toBeGreaterThan(0)
    const failed = (await collect(llm.batches.results(batch.id))).find(({ outcome }) => outcome === 'errored')
    expect(JSON.stringify(failed?.line)).toContain('spending limit')
    const [row] = await llm.usage.report({ by: 'tenant' })
    expect(row?.nanoUsd).toBeLessThanOrEqual(500_000n)
    expect(row?.calls).toBe(batch.counts.succeeded)
  })

  test('count towards no limit of tokens, and have a limit of waiting requests', async () => {
    const llm = await open({ batches: { maxQueuedRequests: 5 } })
    const caller = { ...ann, limits: { tokensPerMinute: 20, requestsPerMinute: 1 } }

    await ended(
      llm,
      await llm.batches.create(
        ['a', 'b', 'c', 'd', 'e'].map((id) => ask(id)),
        { caller },
      ),
    )

    expect(await llm.limits.of(caller)).toMatchObject([{ remaining: 1 }, { remaining: 20 }])
    await expect(
      llm.batches.create(
        ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ask(id)),
        { caller },
      ),
    ).rejects.toMatchObject({
      code: 'rate_limit',
      details: { retryAfterMs: expect.any(Number) },
    })
  })

  test('of a deleted tenant are deleted, and those of others stay', async () => {
    const llm = await open()
    await ended(llm, await llm.batches.create([ask('a')], { caller: ann }))
    const kept = await ended(llm, await llm.batches.create([ask('a')], { caller: ben }))

    const { deleted } = await llm.tenants.delete('acme')

    expect(deleted).toMatchObject({ batches: 1, files: 0 })
    expect((await llm.batches.list()).batches.map(({ id }) => id)).toEqual([kept.id])
  })

  test.each([
    [
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: 'Hello' }] },
      { object: 'chat.completion', choices: [{ message: { content: 'one two three' } }] },
    ],
    ['/v1/completions', { prompt: ['Hello', 'Hi'] }, { choices: [{ text: 'one two three' }, { index: 1 }] }],
    [
      '/v1/responses',
      { input: 'Hello' },
      { object: 'response', output: [{ content: [{ text: 'one two three' }] }] },
    ],
    ['/v1/embeddings', { input: ['Hello', 'Hi'] }, { data: [{ object: 'embedding' }, { index: 1 }] }],
  ])('in the format of the OpenAI API run requests to %s', async (url, body, expected) => {
    const llm = await open()
    const line = (custom_id: string, more: object) => ({
      ...{ custom_id, method: 'POST', url },
      body: { model: 'tiny', ...body, ...more },
    })

    const batch = await ended(
      llm,
      await llm.batches.create([line('good \u0000 🦊', {}), line('bad', { model: 7 })], {
        ...{ format: 'openai', endpoint: url, caller: ann, metadata: { night: '1' } },
      }),
    )

    expect(batch).toMatchObject({
      endpoint: url,
      counts: { succeeded: 1, errored: 1 },
      metadata: { night: '1' },
    })
    const [good, bad] = await collect(llm.batches.results(batch.id))
    expect(good).toMatchObject({
      customId: 'good \u0000 🦊',
      line: {
        id: expect.stringMatching(/^batch_req_/),
        response: { status_code: 200, request_id: expect.stringMatching(/^req_/), body: expected },
        error: null,
      },
    })
    expect(bad?.line).toMatchObject({
      response: { status_code: 400, body: { error: { param: 'model', type: 'invalid_request_error' } } },
      error: null,
    })
    expect(await llm.usage.calls()).toMatchObject([{ isBatch: true, dialect: 'openai' }])
    for (const [fileId, kind] of [
      [batch.outputFileId, 'output'],
      [batch.errorFileId, 'error'],
    ]) {
      const file = await llm.batches.files.get(fileId ?? '')
      const content = (await collect(await llm.batches.files.read(file.id))).join('')
      expect(file).toMatchObject({ purpose: 'batch_output', bytes: Buffer.byteLength(content) })
      expect(content.trimEnd().split('\n')).toHaveLength(1)
      expect(file.filename).toBe(`${batch.id}_${kind}.jsonl`)
    }
  })

  test('that are canceled before an item runs end once, and their result files can be deleted', async () => {
    const errors: unknown[] = []
    const logger = { warn: () => {}, error: (details: unknown) => void errors.push(details) }
    const llm = await open({ batches: { run: false }, logger })
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: { model: 'tiny' } }
    const created = await llm.batches.create([line], { format: 'openai' })
    await llm.batches.cancel(created.id)

    const batch = await llm.batches.waitUntilEnded(created.id)
    const fileId = batch.errorFileId ?? ''
    const content = (await collect(await llm.batches.files.read(fileId))).join('')

    expect(JSON.parse(content)).toMatchObject({ custom_id: 'a', error: { code: 'batch_cancelled' } })
    await llm.batches.files.delete(fileId)
    while ((await llm.batches.get(batch.id)).errorFileId !== undefined) await delay(20)
    expect(await collect(llm.batches.results(batch.id))).toEqual([])
    expect(await llm.batches.get(batch.id)).toMatchObject({ counts: { canceled: 1 }, endedAt: batch.endedAt })
    expect(errors).toEqual([])
  })

  test.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: Number.NaN }, 'limit'],
    [{ limit: 1_001 }, 'limit'],
  ])('are not listed with %j', async (query, param) => {
    const llm = await open()

    await expect(llm.batches.list(query)).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param },
    })
  })

  test('of a deleted tenant end at once, and store and charge nothing', async () => {
    const { engine, inside } = gatedEngine()
    const llm = await open({ engine, batches: { concurrency: 2 } })
    const created = await llm.batches.create(
      ['a', 'b', 'c'].map((id) => ask(id)),
      { caller: ann },
    )
    await untilInside(inside, 2)

    expect(await llm.tenants.delete('acme')).toMatchObject({ endedCalls: 2, deleted: { batches: 1 } })

    await expect(llm.batches.get(created.id)).rejects.toMatchObject({ code: 'not_found' })
    expect(await llm.usage.calls()).toEqual([])
    expect(inside()).toBe(2)
  })

  test('end with the error of a direct call when the key that created them is revoked', async () => {
    const database = await fresh()
    const llm = await open({ auth: 'keys', batches: { run: false } }, database)
    const { key, secret } = await llm.keys.create({ name: 'night' })
    const caller = await llm.keys.authenticate(secret)
    const created = await llm.batches.create([ask('a')], { caller })
    await llm.keys.revoke(key.id)
    await llm.close()

    const second = await open({ auth: 'keys' }, database)

    const batch = await ended(second, created)
    expect(batch.counts).toMatchObject({ errored: 1 })
    expect((await collect(second.batches.results(batch.id)))[0]?.line).toMatchObject({
      result: { error: { error: { type: 'authentication_error' } } },
    })
  })
})

test('a database for batches beside that of the app is rejected, because charges would be in the other one', async () => {
  const batches = { database: 'batches.db' }

  await expect(createLlm({ models: [], database: ':memory:', batches })).rejects.toThrow('`batches.database`')
})

test('without a database, batches are rejected with an error that names the option', async () => {
  const llm = await createLlm({ engine: scriptedEngine('one'), models: [] })
  onTestFinished(() => llm.close())

  await expect(llm.batches.create([ask('a')])).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('`database`'),
  })
})
