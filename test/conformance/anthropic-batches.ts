/** Message batches in Anthropic's API. */
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, vi } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import {
  batchUrl,
  changingCaller,
  createBatch,
  endedBatch,
  gatedEngine,
  item,
  listBatches,
  resultsIn,
  resultsOf,
  retrieveBatch,
  sendBatch,
  unknownIds,
  untilEnded,
  withBatches,
} from './batch-calls.ts'
import { ask, expectAnthropicError, greeting, json, messageOf, textOf } from './calls.ts'
import type { AnthropicRequirementId } from './requirements.ts'
import type { Check, InFront } from './suite.ts'

const verbs = [
  ['GET', ''],
  ['GET', '/results'],
  ['POST', '/cancel'],
  ['DELETE', ''],
] as const

/** Calls all routes of a batch, and expects a 404 from each. */
async function expectNotFound(url: string, id: string): Promise<void> {
  for (const [method, what] of verbs) {
    const response = await fetch(batchUrl(url, id, what), { method, headers: version })
    await expectAnthropicError(response, 404, 'not_found_error')
  }
}

const version = { 'anthropic-version': '2023-06-01' }
const dayMs = 24 * 60 * 60 * 1_000

export const batches = {
  'anthropic:transport:batch-lifecycle': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, withBatches)

    const created = await createBatch(url, [
      item('good'),
      item('bad', { model: undefined }),
      item('last-1_X'),
    ])

    expect(created).toEqual({
      id: expect.stringMatching(/^msgbatch_[\w-]+$/),
      type: 'message_batch',
      processing_status: 'in_progress',
      request_counts: { processing: 3, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/),
      expires_at: expect.any(String),
      ended_at: null,
      cancel_initiated_at: null,
      archived_at: null,
      results_url: null,
    })
    expect(Date.parse(created.expires_at) - Date.parse(created.created_at)).toBe(dayMs)
    expect(await retrieveBatch(url, created.id)).toEqual(created)
    open()
    const batch = await endedBatch(url, created.id)
    expect(batch).toEqual({
      ...created,
      processing_status: 'ended',
      request_counts: { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 },
      ended_at: expect.any(String),
      results_url: `${url}/v1/messages/batches/${created.id}/results`,
    })
    const results = await resultsOf(url, batch.id)
    expect([...results.keys()].sort()).toEqual(['bad', 'good', 'last-1_X'])
    expect(results.get('good')).toEqual({
      type: 'succeeded',
      message: expect.objectContaining({
        type: 'message',
        content: [{ type: 'text', text: 'Hello there.' }],
        usage: expect.objectContaining({ service_tier: 'batch', output_tokens: 2 }),
      }),
    })
    const deleted = await fetch(batchUrl(url, batch.id), { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ id: batch.id, type: 'message_batch_deleted' })
    await expectNotFound(url, batch.id)
  },

  'anthropic:transport:batch-cancel-without-body': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, { batches: { concurrency: 1 } })
    const { id } = await createBatch(
      url,
      ['a', 'b', 'c'].map((one) => item(one)),
    )
    await vi.waitFor(() => expect(engine.running).toBe(1), untilEnded)
    /** Like the clients, sends neither a body nor a content type. */
    const cancel = () =>
      new Promise<{ readonly status: number | undefined; readonly body: Readonly<Record<string, unknown>> }>(
        (resolve, reject) => {
          const call = request(batchUrl(url, id, '/cancel'), { method: 'POST', headers: version })
          call.once('error', reject)
          call.once('response', (response) => {
            text(response).then(
              (body) => resolve({ status: response.statusCode, body: JSON.parse(body) }),
              reject,
            )
          })
          call.end()
        },
      )

    const first = await cancel()
    const second = await cancel()
    open()

    expect(first).toMatchObject({
      status: 200,
      body: { id, processing_status: 'canceling', cancel_initiated_at: expect.any(String) },
    })
    expect(second).toMatchObject({
      status: 200,
      body: { id, cancel_initiated_at: first.body.cancel_initiated_at },
    })
    const ended = await endedBatch(url, id)
    expect(ended.request_counts).toEqual({
      ...{ processing: 0, succeeded: 1, errored: 0, canceled: 2, expired: 0 },
    })
    const results = await resultsOf(url, id)
    expect([...results.values()].map(({ type }) => type).sort()).toEqual([
      'canceled',
      'canceled',
      'succeeded',
    ])
    expect([...results.values()].filter(({ type }) => type === 'canceled')).toEqual([
      { type: 'canceled' },
      { type: 'canceled' },
    ])
    expect((await cancel()).body).toEqual(ended)
    expect(engine.requests).toHaveLength(1)
  },

  'anthropic:transport:batch-results-are-lines': async (serve) => {
    const url = await serve(scriptedEngine('one "two"\n three 🦊'), withBatches)
    // Three pages of the database.
    const ids = Array.from({ length: 250 }, (_, index) => `item-${index}`)
    const { id } = await createBatch(
      url,
      ids.map((one) => item(one)),
    )
    await endedBatch(url, id)

    const response = await fetch(batchUrl(url, id, '/results'), { headers: { accept: 'application/binary' } })

    expect(response.headers.get('content-type')).toBe('application/x-jsonl')
    expect(response.headers.get('content-length')).toBeNull()
    expect(response.headers.get('content-encoding')).toBeNull()
    const results = resultsIn(await response.text())
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual([...ids].sort())
  },

  'anthropic:transport:batch-results-that-fail': async (_serve, start) => {
    // More than the sockets buffer.
    const { url, llm } = await start(scriptedEngine(['x'.repeat(100_000)]), withBatches)
    const { id } = await createBatch(
      url,
      Array.from({ length: 250 }, (_, index) => item(`item-${index}`)),
    )
    await endedBatch(url, id)

    const response = await fetch(batchUrl(url, id, '/results'))
    await llm.close()

    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
  },

  'anthropic:transport:batch-parsed-body': async (serve) => {
    const bodyParser: InFront = (mounted) => async (req, res) => {
      const body = await text(req)
      mounted(Object.assign(req, body && { body: JSON.parse(body) }), res)
    }
    const url = await serve(scriptedEngine('Hello there.'), { ...withBatches, inFront: bodyParser })

    const { id } = await createBatch(url, [item('a'), item('b')])

    expect((await endedBatch(url, id)).request_counts).toMatchObject({ succeeded: 2 })
    await expectAnthropicError(
      await sendBatch(url, { requests: [item('a'), item('a')] }),
      400,
      undefined,
      expect.stringMatching(/^requests\.1\.custom_id: /),
    )
  },

  'anthropic:transport:batch-large-body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const content = 'A'.repeat(4 * 1024 ** 2)
    const requests = Array.from({ length: 9 }, (_, index) =>
      item(`i${index}`, { messages: [{ role: 'user', content }] }),
    )

    const { id } = await createBatch(url, requests)

    expect((await endedBatch(url, id)).request_counts).toMatchObject({ succeeded: 9 })
  },

  'anthropic:transport:batch-too-large-body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { batches: { maxBatchBytes: '100kb' } })
    const requests = [item('a'), item('b', { system: 'A'.repeat(200_000) })]

    const response = await sendBatch(url, { requests })

    await expectAnthropicError(response, 413, 'request_too_large')
    expect((await listBatches(url)).data).toEqual([])
  },

  'anthropic:transport:batch-client-disconnects': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const body = JSON.stringify({ requests: Array.from({ length: 2_000 }, (_, index) => item(`i${index}`)) })
    const call = request(`${url}/v1/messages/batches`, {
      method: 'POST',
      headers: { ...json, 'content-length': body.length },
    }).on('error', () => {})

    await new Promise<void>((resolve) => {
      call.write(body.slice(0, -100), () => resolve())
    })
    call.destroy()

    const { id } = await createBatch(url, [item('a')])
    expect((await endedBatch(url, id)).request_counts).toMatchObject({ succeeded: 1 })
    expect((await listBatches(url)).data.map((batch) => batch.id)).toEqual([id])
  },

  'anthropic:transport:batch-unknown-ids': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const id of unknownIds) await expectNotFound(url, id)
  },

  'anthropic:batches:counts': async (serve) => {
    const engine = scriptedEngine(({ model }) =>
      model === 'tiny' ? 'Hello there.' : new LlmError('not_found', 'No.', { param: 'model', model }),
    )
    const url = await serve(engine, withBatches)

    const { id } = await createBatch(url, [
      ...[item('a'), item('b'), item('unknown', { model: 'org/nope:Q4' })],
      item('no-tokens', { max_tokens: undefined }),
    ])

    const { request_counts: counts } = await endedBatch(url, id)
    expect(counts).toEqual({ processing: 0, succeeded: 2, errored: 2, canceled: 0, expired: 0 })
    const results = await resultsOf(url, id)
    expect(results.get('a')).toMatchObject({
      type: 'succeeded',
      message: { usage: { service_tier: 'batch' } },
    })
    for (const [name, type, message] of [
      ['unknown', 'not_found_error', expect.stringContaining('org/nope:Q4')],
      ['no-tokens', 'invalid_request_error', 'max_tokens: Field required'],
    ])
      expect(results.get(String(name))).toEqual({
        type: 'errored',
        error: {
          type: 'error',
          error: { type, message },
          request_id: expect.stringMatching(/^req_.+/),
        },
      })
  },

  'anthropic:batches:errors-of-a-direct-call': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const wrong: readonly object[] = [
      { messages: [] },
      { max_tokens: -1 },
      { max_tokens: 'ten' },
      { temperature: 3 },
      { model: 5 },
      { tools: [{ name: 'a b', input_schema: { type: 'object' } }] },
      { messages: [{ role: 'robot', content: 'Hello' }] },
      { thread: { type: 'create' } },
    ]

    const direct = await Promise.all(
      wrong.map(async (fields) => {
        const response = await ask(url, { ...greeting, ...fields })
        return ((await response.json()) as { readonly error: object }).error
      }),
    )
    const { id } = await createBatch(
      url,
      wrong.map((fields, index) => item(`i${index}`, fields)),
    )
    await endedBatch(url, id)

    const results = await resultsOf(url, id)
    const inBatch = wrong.map((_, index) => {
      const result = results.get(`i${index}`)
      return result?.type === 'errored' && result.error.error
    })
    expect(inBatch).toEqual(direct)
  },

  'anthropic:batches:stream-is-rejected': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, withBatches)

    const { id } = await createBatch(url, [item('a', { stream: true }), item('b', { stream: false })])
    await endedBatch(url, id)

    const results = await resultsOf(url, id)
    expect(results.get('a')).toMatchObject({
      type: 'errored',
      error: {
        error: { type: 'invalid_request_error', message: 'stream: A request of a batch cannot be streamed.' },
      },
    })
    expect(results.get('b')).toMatchObject({ type: 'succeeded' })
    expect(engine.requests).toHaveLength(1)
  },

  'anthropic:batches:delete-and-results-before-the-end': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, withBatches)
    const { id } = await createBatch(url, [item('a')])

    const deleted = await fetch(batchUrl(url, id), { method: 'DELETE', headers: version })
    const results = await fetch(batchUrl(url, id, '/results'), { headers: version })

    await expectAnthropicError(deleted, 400)
    await expectAnthropicError(results, 400)
    // Before its item runs, a canceled batch ends at once.
    await expect.poll(() => engine.requests.length).toBe(1)
    await fetch(batchUrl(url, id, '/cancel'), { method: 'POST' })
    await expectAnthropicError(await fetch(batchUrl(url, id), { method: 'DELETE', headers: version }), 400)
    open()
    await endedBatch(url, id)
    expect((await fetch(batchUrl(url, id), { method: 'DELETE' })).status).toBe(200)
  },

  'anthropic:batches:owners': async (serve) => {
    const { state, given } = changingCaller('ann')
    const url = await serve(scriptedEngine('Hello there.'), given)
    const { id } = await createBatch(url, [item('a')])
    await endedBatch(url, id)

    state.id = 'ben'
    await expectNotFound(url, id)
    expect(await listBatches(url)).toEqual({ data: [], has_more: false, first_id: null, last_id: null })
    expect((await listBatches(url, `?after_id=${id}`)).data).toEqual([])
    state.id = 'ann'

    expect((await listBatches(url)).data.map((batch) => batch.id)).toEqual([id])
    expect((await resultsOf(url, id)).size).toBe(1)
  },

  'anthropic:batches:pages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const ids: string[] = []
    for (let index = 0; index < 5; index++) {
      const { id, created_at } = await createBatch(url, [item('a')])
      ids.unshift(id)
      // Batches of one millisecond have no order.
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(Date.parse(created_at)), { interval: 1 })
    }
    const pageOf = async (query: string) => {
      const { data, has_more, first_id, last_id } = await listBatches(url, query)
      const found = data.map(({ id }) => ids.indexOf(id))
      expect([first_id, last_id]).toEqual([data.at(0)?.id ?? null, data.at(-1)?.id ?? null])
      return [found, has_more]
    }

    expect(await pageOf('')).toEqual([[0, 1, 2, 3, 4], false])
    expect(await pageOf('?limit=2')).toEqual([[0, 1], true])
    expect(await pageOf(`?limit=2&after_id=${ids[1]}`)).toEqual([[2, 3], true])
    expect(await pageOf(`?limit=2&after_id=${ids[3]}`)).toEqual([[4], false])
    expect(await pageOf(`?limit=2&before_id=${ids[3]}`)).toEqual([[1, 2], true])
    expect(await pageOf(`?limit=2&before_id=${ids[1]}`)).toEqual([[0], false])
    for (const query of ['?limit=0', '?limit=1001', '?limit=x', `?after_id=${ids[0]}&before_id=${ids[1]}`])
      await expectAnthropicError(await fetch(`${url}/v1/messages/batches${query}`, { headers: version }), 400)
  },

  'anthropic:batches:restart': async (_serve, start) => {
    const database = join(emptyFolder(), 'batches.db')
    const { engine } = gatedEngine()
    const first = await start(engine, { batches: { concurrency: 2 }, database })
    const { id } = await createBatch(
      first.url,
      ['a', 'b', 'c', 'd'].map((one) => item(one)),
    )
    await vi.waitFor(() => expect(engine.running).toBe(2), untilEnded)
    await first.llm.close()

    const second = await start(scriptedEngine('Hello again.'), { ...withBatches, database })

    expect((await endedBatch(second.url, id)).request_counts).toMatchObject({ succeeded: 4 })
    const results = [...(await resultsOf(second.url, id)).values()]
    expect(results).toHaveLength(4)
  },

  'anthropic:batches:interactive-calls': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, withBatches)
    const { id } = await createBatch(
      url,
      Array.from({ length: 40 }, (_, index) => item(`i${index}`)),
    )
    await vi.waitFor(() => expect(engine.running).toBeGreaterThan(0), untilEnded)

    const answer = await ask(url, { ...greeting, messages: [{ role: 'user', content: 'interactive' }] })

    expect(textOf(await messageOf(answer))).toBe('At once.')
    expect((await retrieveBatch(url, id)).processing_status).toBe('in_progress')
    open()
    expect((await endedBatch(url, id)).request_counts).toMatchObject({ succeeded: 40 })
  },

  'anthropic:batches:limits': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, { batches: { maxQueuedRequests: 3 } })
    await createBatch(url, [item('a'), item('b')])

    const response = await sendBatch(url, { requests: [item('c'), item('d')] })

    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    await expectAnthropicError(response, 429, 'rate_limit_error', expect.stringContaining('3 unfinished'))
    await createBatch(url, [item('c')])
    open()
  },

  'anthropic:batches:without-database': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const response of [
      await sendBatch(url, { requests: [item('a')] }),
      await fetch(`${url}/v1/messages/batches`, { headers: version }),
      await fetch(batchUrl(url, 'msgbatch_1'), { headers: version }),
    ])
      await expectAnthropicError(response, 400, undefined, expect.stringContaining('database'))
  },
} satisfies Partial<Record<AnthropicRequirementId, Check>>

const pattern = "custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
const notJson = 'The request body is not valid JSON.'
const raw = (params: string): string => `{"requests":[{"custom_id":"a","params":${params}}]}`

/** Bodies that create no batch: the error message, and the bodies. */
const rejected: Readonly<
  Record<string, readonly [message: unknown, ...bodies: (string | Uint8Array<ArrayBuffer> | object)[]]>
> = {
  'a `custom_id` twice': [
    "requests.2.custom_id: 'a' is the id of another request of this batch",
    { requests: [item('a'), item('b'), item('a')] },
  ],
  'a `custom_id` with other characters, empty or of 65 characters': [
    `requests.1.${pattern}`,
    ...['a b', 'a.b', 'ä', '', 'a\n', "' OR 1=1 --", '../a', 'x'.repeat(65)].map((id) => ({
      requests: [item('good'), item(id)],
    })),
  ],
  'a `custom_id` that is not a string': [
    'requests.0.custom_id: Input should be a valid string',
    ...[5, true, null, [], {}].map((id) => ({ requests: [{ ...item('a'), custom_id: id }] })),
  ],
  'no `custom_id`': [
    'requests.1.custom_id: Field required',
    { requests: [item('a'), { params: item('b').params }] },
  ],
  'no `params`': ['requests.1.params: Field required', { requests: [item('a'), { custom_id: 'b' }] }],
  '`params` that are not an object': [
    expect.stringMatching(/^requests\.0\.params: /),
    ...['x', 5, true, null, []].map((params) => ({ requests: [{ custom_id: 'a', params }] })),
  ],
  'an item that is not an object': [
    expect.stringMatching(/^requests\.1: /),
    ...['x', 5, true, null, []].map((one) => ({ requests: [item('a'), one] })),
  ],
  'no items': ['requests: Expected at least one request.', { requests: [] }],
  'no list of items': ['requests: Field required', {}, { items: [item('a')] }],
  '`requests` that are not a list': [
    expect.stringMatching(/^requests: /),
    ...['x', 5, true, null, {}, { 0: item('a') }].map((requests) => ({ requests })),
  ],
  'a body that is not JSON': [
    notJson,
    '',
    ' \n',
    'hello',
    "{'requests':[]}",
    '{"requests":[NaN]}',
    '<a></a>',
  ],
  'a truncated body': [
    notJson,
    ...[1, 2, 3, 20, 60].map((cut) => JSON.stringify({ requests: [item('a'), item('b')] }).slice(0, -cut)),
  ],
  'text after the body': [notJson, `${JSON.stringify({ requests: [item('a')] })}}`, '{"requests":[]}x'],
  'a body that is not an object': [
    expect.stringMatching(/JSON object/),
    ...['"x"', '5', 'true', 'null', '[]', `[${JSON.stringify(item('a'))}]`],
  ],
  'nesting beyond 128 levels': [
    expect.stringContaining('nested deeper'),
    raw(`{"a":${'['.repeat(129)}${']'.repeat(129)}}`),
  ],
  'invalid UTF-8': [
    notJson,
    new Uint8Array(
      Buffer.concat([
        Buffer.from('{"requests":[{"custom_id":"a","params":{"model":"'),
        Buffer.of(0xff),
        Buffer.from('"}}]}'),
      ]),
    ),
  ],
}

export const batchesBadInput: Readonly<Record<string, Check>> = {
  ...Object.fromEntries(
    Object.entries(rejected).map(([what, [message, ...bodies]]): [string, Check] => [
      `${what} creates no message batch (Anthropic API)`,
      async (serve) => {
        const engine = scriptedEngine('Hello there.')
        const url = await serve(engine, withBatches)

        for (const body of bodies) {
          const response = await sendBatch(url, body)
          expect([body, await response.clone().json()]).toMatchObject([body, { error: { message } }])
          await expectAnthropicError(response, 400)
        }

        expect((await listBatches(url)).data).toEqual([])
        expect(engine.requests).toEqual([])
      },
    ]),
  ),

  'a message batch of more items than allowed is rejected (Anthropic API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { batches: { maxRequests: 3 } })
    const items = ['a', 'b', 'c', 'd'].map((one) => item(one))

    const response = await sendBatch(url, { requests: items })

    await expectAnthropicError(response, 400, undefined, 'requests: A batch can have at most 3 requests.')
    expect((await listBatches(url)).data).toEqual([])
    await createBatch(url, items.slice(1))
  },

  'a compressed body creates no message batch (Anthropic API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    const response = await sendBatch(url, 'x', { 'content-encoding': 'gzip' })

    await expectAnthropicError(response, 400, undefined, expect.stringContaining('gzip'))
  },

  'the key `__proto__` in an item of a message batch has the effect of a direct call (Anthropic API)': async (
    serve,
  ) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const params = JSON.stringify(greeting).slice(0, -1)
    const bodies = [
      `${params},"__proto__":{"stream":true}}`,
      '{"__proto__":{"model":"tiny","max_tokens":1,"messages":[]}}',
    ]
    const outcomeOf = (status: number, error: unknown) => [status === 200 ? 'succeeded' : 'errored', error]

    const direct = await Promise.all(
      bodies.map(async (body) => {
        const response = await ask(url, body)
        return outcomeOf(response.status, ((await response.json()) as { readonly error?: object }).error)
      }),
    )
    const sent = bodies.map((body, index) => `{"custom_id":"i${index}","params":${body}}`)
    const response = await sendBatch(url, `{"requests":[${sent.join(',')}]}`)
    const { id } = (await response.json()) as { readonly id: string }
    await endedBatch(url, id)

    const results = await resultsOf(url, id)
    const inBatch = bodies.map((_, index) => {
      const result = results.get(`i${index}`)
      return [result?.type, result?.type === 'errored' ? result.error.error : undefined]
    })
    expect(inBatch).toEqual(direct)
  },
}
