/** Batches in OpenAI's API, whose requests and results are files. */
import { LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect, vi } from 'vitest'
import {
  changingCaller,
  countFiles,
  createOpenaiBatch,
  endedOpenaiBatch,
  gatedEngine,
  line,
  outputOf,
  sendOpenaiBatch,
  unknownIds,
  untilEnded,
  uploadFile,
  withBatches,
} from './batch-calls.ts'
import { chat, completionOf, contentOf, expectError, hello } from './calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const seconds = expect.any(Number)

const post = (url: string, id: string, what: string) =>
  fetch(`${url}/v1/batches/${id}${what}`, { method: 'POST' })

export const batches = {
  'openai:transport:batch-lifecycle': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    const created = await createOpenaiBatch(
      url,
      [line('a'), line('b'), line('c'), line('bad', { temperature: 3 })],
      { metadata: { night: 'one' } },
    )

    expect(created).toEqual({
      id: expect.stringMatching(/^batch_[\w-]+$/),
      object: 'batch',
      endpoint: '/v1/chat/completions',
      errors: null,
      input_file_id: expect.stringMatching(/^file-/),
      completion_window: '24h',
      status: 'validating',
      output_file_id: null,
      error_file_id: null,
      created_at: seconds,
      in_progress_at: null,
      expires_at: created.created_at + 24 * 60 * 60,
      finalizing_at: null,
      completed_at: null,
      failed_at: null,
      expired_at: null,
      cancelling_at: null,
      cancelled_at: null,
      request_counts: { total: 0, completed: 0, failed: 0 },
      metadata: { night: 'one' },
    })
    const batch = await endedOpenaiBatch(url, created.id)
    expect(batch).toEqual({
      ...created,
      status: 'completed',
      output_file_id: expect.stringMatching(/^file-/),
      error_file_id: expect.stringMatching(/^file-/),
      ...{ in_progress_at: seconds, finalizing_at: seconds, completed_at: seconds },
      request_counts: { total: 4, completed: 3, failed: 1 },
    })
    const output = await outputOf(url, batch.output_file_id)
    expect(output.map(({ custom_id }) => custom_id).sort()).toEqual(['a', 'b', 'c'])
    expect(output[0]).toEqual({
      id: expect.stringMatching(/^batch_req_/),
      custom_id: expect.any(String),
      response: {
        status_code: 200,
        request_id: expect.stringMatching(/^req_/),
        body: expect.objectContaining({
          object: 'chat.completion',
          choices: [expect.objectContaining({ finish_reason: 'stop' })],
        }),
      },
      error: null,
    })
    expect(await outputOf(url, batch.error_file_id)).toEqual([
      {
        id: expect.stringMatching(/^batch_req_/),
        custom_id: 'bad',
        response: {
          status_code: 400,
          request_id: expect.stringMatching(/^req_/),
          body: { error: expect.objectContaining({ param: 'temperature', type: 'invalid_request_error' }) },
        },
        error: null,
      },
    ])
    for (const id of [batch.output_file_id, batch.error_file_id]) {
      const file = (await (await fetch(`${url}/v1/files/${id}`)).json()) as OpenAI.FileObject
      const { byteLength: bytes } = await (await fetch(`${url}/v1/files/${id}/content`)).arrayBuffer()
      expect(file).toMatchObject({ id, bytes, object: 'file', purpose: 'batch_output', status: 'processed' })
    }
  },

  'openai:transport:batch-cancel-without-body': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, { batches: { concurrency: 1 } })
    const { id } = await createOpenaiBatch(url, [line('a'), line('b'), line('c')])
    await vi.waitFor(() => expect(engine.running).toBe(1), untilEnded)

    const response = await post(url, id, '/cancel')
    const again = await post(url, id, '/cancel')
    open()

    expect([response.status, again.status]).toEqual([200, 200])
    expect(await response.json()).toMatchObject({ id, status: 'cancelling', cancelling_at: seconds })
    const batch = await endedOpenaiBatch(url, id)
    expect(batch).toMatchObject({
      status: 'cancelled',
      cancelled_at: seconds,
      completed_at: null,
      request_counts: { total: 3, completed: 1, failed: 0 },
    })
    const finished = await outputOf(url, batch.output_file_id)
    expect(finished.map(({ response: result }) => result?.status_code)).toEqual([200])
    const others = await outputOf(url, batch.error_file_id)
    expect(others.map(({ response: result, error }) => [result, error?.code])).toEqual([
      [null, 'batch_cancelled'],
      [null, 'batch_cancelled'],
    ])
    expect(await (await post(url, id, '/cancel')).json()).toEqual(batch)
  },

  'openai:transport:batch-unknown-ids': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const id of unknownIds) {
      expect([id, (await fetch(`${url}/v1/batches/${id}`)).status]).toEqual([id, 404])
      expect([id, (await post(url, id, '/cancel')).status]).toEqual([id, 404])
    }
  },

  'openai:batches:invalid-files': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, withBatches)

    for (const [lines, ...problems] of [
      [[line('a'), '', line('b'), line('a')], { code: 'duplicate_custom_id', line: 4, param: 'custom_id' }],
      [[line('a'), '{"custom_id":', 'x'], { code: 'invalid_json_line', line: 2 }, { line: 3 }],
      [[line('a', {}, { url: '/v1/embeddings' })], { code: 'mismatched_url', line: 1, param: 'url' }],
      [[line('a', {}, { method: 'GET' })], { code: 'invalid_method', line: 1, param: 'method' }],
      [[line('a', {}, { custom_id: undefined })], { line: 1, param: 'custom_id' }],
      [[line('a', {}, { body: 'x' })], { line: 1, param: 'body' }],
      [['5'], { line: 1 }],
      [['', ''], { code: 'invalid_request' }],
    ] as const) {
      const { id } = await createOpenaiBatch(url, lines)
      const batch = await endedOpenaiBatch(url, id)

      expect([lines, batch]).toMatchObject([
        lines,
        {
          status: 'failed',
          failed_at: seconds,
          errors: {
            object: 'list',
            data: problems.map((problem) => ({ message: expect.stringMatching(/./), ...problem })),
          },
          output_file_id: null,
          error_file_id: null,
          request_counts: { total: 0, completed: 0, failed: 0 },
        },
      ])
    }
    expect(engine.requests).toEqual([])
  },

  'openai:batches:files-with-odd-lines': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const endpoint = '/v1/chat/completions'
    const sent = `\uFEFF${line('a')}\r\n\r\n \n${line('ä 🦊\n')}`

    const { id: file } = await uploadFile(url, sent)
    const created = (await (await sendOpenaiBatch(url, file, { endpoint })).json()) as OpenAI.Batch
    const batch = await endedOpenaiBatch(url, created.id)

    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect((await outputOf(url, batch.output_file_id)).map(({ custom_id }) => custom_id)).toEqual([
      'a',
      'ä 🦊\n',
    ])
  },

  'openai:batches:failed-requests': async (serve) => {
    const engine = scriptedEngine(({ model }) =>
      model === 'tiny'
        ? 'Hello there.'
        : new LlmError('not_found', `model "${model}" not found`, { param: 'model', model }),
    )
    const url = await serve(engine, withBatches)

    const wrong: readonly object[] = [
      { model: 'nope' },
      { messages: [] },
      { temperature: 3 },
      { max_tokens: 'ten' },
      { model: undefined },
    ]

    const direct = await Promise.all(
      wrong.map(async (fields) => {
        const response = await chat(url, { ...hello, ...fields })
        return [response.status, await response.json()]
      }),
    )
    const { id } = await createOpenaiBatch(url, [
      ...wrong.map((fields, index) => line(`${index}`, fields)),
      line('stream', { stream: true }),
    ])
    const batch = await endedOpenaiBatch(url, id)

    expect(batch).toMatchObject({
      status: 'completed',
      output_file_id: null,
      request_counts: { total: 6, completed: 0, failed: 6 },
    })
    const errors = new Map(
      (await outputOf(url, batch.error_file_id)).map(({ custom_id, response }) => [
        custom_id,
        [response?.status_code, response?.body],
      ]),
    )
    expect(wrong.map((_, index) => errors.get(`${index}`))).toEqual(direct)
    expect(direct[0]).toMatchObject([404, { error: { code: 'model_not_found' } }])
    expect(errors.get('stream')).toMatchObject([400, { error: { param: 'stream' } }])
  },

  'openai:batches:endpoints': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const [endpoint, body, object] of [
      ['/v1/completions', { messages: undefined, prompt: 'Hello' }, 'text_completion'],
      ['/v1/embeddings', { messages: undefined, input: 'Hello' }, 'list'],
      ['/v1/responses', { messages: undefined, input: 'Hello' }, 'response'],
    ] as const) {
      const { id } = await createOpenaiBatch(url, [line('a', body, { url: endpoint })], { endpoint })
      const batch = await endedOpenaiBatch(url, id)

      expect(batch).toMatchObject({ endpoint, request_counts: { completed: 1, failed: 0 } })
      expect(await outputOf(url, batch.output_file_id)).toMatchObject([
        { response: { status_code: 200, body: { object } } },
      ])
    }
  },

  'openai:batches:invalid-requests': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const { id } = await uploadFile(url, line('a'))

    for (const [param, file, more] of [
      ['input_file_id', 'file-unknown', {}],
      ['input_file_id', "' OR 1=1 --", {}],
      ['input_file_id', 5, {}],
      ['endpoint', id, { endpoint: '/v1/models' }],
      ['endpoint', id, { endpoint: '__proto__' }],
      ['completion_window', id, { completion_window: '1h' }],
      ['metadata', id, { metadata: 'x' }],
      [
        'metadata',
        id,
        { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'x'])) },
      ],
    ] as const) {
      const response = await sendOpenaiBatch(url, file as string, more)

      expect([param, await response.json()]).toMatchObject([
        param,
        { error: { type: 'invalid_request_error', param: expect.stringMatching(`^${param}`) } },
      ])
      expect(response.status).toBe(400)
    }
    expect(await (await fetch(`${url}/v1/batches`)).json()).toMatchObject({ data: [], has_more: false })
  },

  'openai:batches:result-file-as-input': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const { id } = await createOpenaiBatch(url, [line('a')])
    const { output_file_id: output } = await endedOpenaiBatch(url, id)

    const response = await sendOpenaiBatch(url, String(output))

    await expectError(response, 400, { param: 'input_file_id', code: expect.anything() })
  },

  'openai:batches:too-many-requests': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { batches: { maxRequests: 2 } })

    const { id } = await createOpenaiBatch(url, [line('a'), line('b'), line('c')])

    expect(await endedOpenaiBatch(url, id)).toMatchObject({
      status: 'failed',
      errors: { data: [{ message: expect.stringContaining('more than 2 requests') }] },
    })
  },

  'openai:batches:owners': async (serve) => {
    const { state, given } = changingCaller('ann')
    const url = await serve(scriptedEngine('Hello there.'), given)
    const { id, input_file_id: input } = await createOpenaiBatch(url, [line('a')])
    const { output_file_id: output } = await endedOpenaiBatch(url, id)

    state.id = 'ben'
    expect((await fetch(`${url}/v1/batches/${id}`)).status).toBe(404)
    expect((await post(url, id, '/cancel')).status).toBe(404)
    expect(await (await fetch(`${url}/v1/batches`)).json()).toMatchObject({ data: [] })
    expect((await sendOpenaiBatch(url, input)).status).toBe(400)
    for (const file of [input, output]) {
      expect((await fetch(`${url}/v1/files/${file}`)).status).toBe(404)
      expect((await fetch(`${url}/v1/files/${file}/content`)).status).toBe(404)
      expect((await fetch(`${url}/v1/files/${file}`, { method: 'DELETE' })).status).toBe(404)
    }
    expect(await countFiles(url)).toBe(0)
    state.id = 'ann'
    expect(await countFiles(url)).toBe(2)
  },

  'openai:batches:pages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const ids: string[] = []
    for (let index = 0; index < 3; index++) {
      const startedAt = Date.now()
      ids.unshift((await createOpenaiBatch(url, [line('a')])).id)
      // Batches of one millisecond have no order.
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(startedAt + 1), { interval: 1 })
    }
    const pageOf = async (query: string) =>
      (await (await fetch(`${url}/v1/batches${query}`)).json()) as {
        readonly data: readonly { readonly id: string }[]
        readonly has_more: boolean
      }

    const first = await pageOf('?limit=2')
    const second = await pageOf(`?limit=2&after=${ids[1]}`)

    expect(first).toMatchObject({ object: 'list', first_id: ids[0], last_id: ids[1], has_more: true })
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids)
    expect(second.has_more).toBe(false)
    for (const query of ['?limit=0', '?limit=101', '?limit=x'])
      expect((await fetch(`${url}/v1/batches${query}`)).status).toBe(400)
  },

  'openai:batches:interactive-calls': async (serve) => {
    const { engine, open } = gatedEngine()
    const url = await serve(engine, withBatches)
    const { id } = await createOpenaiBatch(
      url,
      Array.from({ length: 40 }, (_, index) => line(`i${index}`)),
    )
    await vi.waitFor(() => expect(engine.running).toBeGreaterThan(0), untilEnded)

    const answer = await chat(url, { ...hello, messages: [{ role: 'user', content: 'interactive' }] })

    expect(contentOf(await completionOf(answer))).toBe('At once.')
    expect(await (await fetch(`${url}/v1/batches/${id}`)).json()).toMatchObject({ status: 'in_progress' })
    open()
    expect((await endedOpenaiBatch(url, id)).request_counts).toMatchObject({ completed: 40 })
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
