import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { sendChunks, stubUpstream } from '../../../../../../test/support/upstream-stub.ts'
import { collect, type GenerateEvent, type GenerateResult } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { upstreamEngine } from '../index.ts'

const request: GenerateRequest = {
  model: 'm',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
}
const call = { signal: new AbortController().signal }

const frame = (event: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
const start = (usage: object = { input_tokens: 5, output_tokens: 0 }) =>
  frame({ type: 'message_start', message: { usage } })
const block = (index: number, content_block: object) =>
  frame({ type: 'content_block_start', index, content_block })
const delta = (index: number, fields: object) => frame({ type: 'content_block_delta', index, delta: fields })
const text = (value: string, index = 0) => delta(index, { type: 'text_delta', text: value })
const ending = (
  stop_reason: string,
  usage: object = { output_tokens: 2 },
  stop_sequence: string | null = null,
) =>
  frame({ type: 'message_delta', delta: { stop_reason, stop_sequence }, usage }) +
  frame({ type: 'message_stop' })

type Respond = (response: ServerResponse) => void
const stream =
  (...chunks: readonly (string | Uint8Array)[]): Respond =>
  (response) =>
    sendChunks(response.writeHead(200, { 'content-type': 'text/event-stream' }), chunks)

async function answer(respond: Respond, changes: Partial<GenerateRequest> = {}): Promise<GenerateResult> {
  const { engine } = await stubUpstream('anthropic', respond)
  return collect(engine.generate({ ...request, ...changes }, call))
}

test('a request has the headers of the API', async () => {
  const { engine, requests } = await stubUpstream('anthropic', stream(start(), ending('end_turn')))
  await collect(engine.generate(request, call))

  expect(requests).toMatchObject([
    { path: '/v1/messages', headers: { 'x-api-key': 'key-1', 'anthropic-version': '2023-06-01' } },
  ])
})

test('blocks become events, and unknown events and blocks are ignored', async () => {
  const usage = {
    ...{ input_tokens: 5, cache_read_input_tokens: 10, cache_creation_input_tokens: 6, output_tokens: 1 },
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 4 },
  }
  const all = await answer(
    stream(
      start(usage),
      frame({ type: 'ping' }) + frame({ type: 'news' }),
      block(0, { type: 'thinking', thinking: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
      delta(0, { type: 'signature_delta', signature: 'abc' }),
      block(1, { type: 'redacted_thinking', data: 'x' }),
      block(2, { type: 'text', text: '' }) + text('It is', 2) + text(' here.', 2),
      block(3, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
      delta(3, { type: 'input_json_delta', partial_json: '{"q":1}' }),
      block(4, { type: 'tool_use', id: 'toolu_a', name: 'look', input: {} }),
      delta(4, { type: 'input_json_delta', partial_json: '' }),
      delta(4, { type: 'input_json_delta', partial_json: '{"at":' }),
      delta(4, { type: 'input_json_delta', partial_json: '1}' }),
      block(5, { type: 'tool_use', id: 'toolu_b', name: 'stop', input: {} }),
      ending('tool_use', { output_tokens: 30 }),
    ),
  )

  expect(all).toMatchObject({
    ...{ text: 'It is here.', reasoning: 'Hm.', finishReason: 'tool-calls' },
    toolCalls: [
      { id: 'call_a', name: 'look', arguments: '{"at":1}' },
      { id: 'call_b', name: 'stop', arguments: '{}' },
    ],
    usage: {
      ...{ inputTokens: 21, reusedTokens: 10, cacheReadTokens: 10, outputTokens: 30 },
      cacheWriteTokens: { '5m': 2, '1h': 4 },
    },
  })
  expect(all.usage.isEstimated).toBeUndefined()
})

test.each([
  ['end_turn', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'context'],
  ['refusal', 'stop'],
])('the stop reason %s ends the answer with %s', async (reason, finishReason) => {
  const result = await answer(stream(start(), block(0, { type: 'text', text: 'a' }), ending(reason)))

  expect(result).toMatchObject({ text: 'a', finishReason })
})

test('the stop sequence that matched is reported', async () => {
  const result = await answer(
    stream(start(), text('a'), ending('stop_sequence', { output_tokens: 1 }, 'END')),
  )

  expect(result).toMatchObject({ finishReason: 'stop', stopSequence: 'END' })
})

test('a call that the limit cut off is incomplete', async () => {
  const tool = block(0, { type: 'tool_use', id: 'toolu_a', name: 'look', input: {} })
  const result = await answer(stream(start(), tool, ending('max_tokens')))

  expect(result).toMatchObject({ finishReason: 'length' })
  expect(result.toolCalls).toBeUndefined()
})

test('a request for no output is answered with its usage', async () => {
  const usage = { input_tokens: 1, cache_creation_input_tokens: 9, output_tokens: 0 }
  const result = await answer((response) => response.end(JSON.stringify({ content: [], usage })), {
    maxTokens: 0,
  })

  expect(result).toMatchObject({
    ...{ text: '', finishReason: 'length' },
    usage: { inputTokens: 10, outputTokens: 0, cacheWriteTokens: { '5m': 9, '1h': 0 } },
  })
})

test('a request for no output ends without an error when the caller leaves', async () => {
  const leaving = new AbortController()
  const { engine } = await stubUpstream('anthropic', () => leaving.abort())
  const events: GenerateEvent[] = []
  for await (const event of engine.generate({ ...request, maxTokens: 0 }, { signal: leaving.signal }))
    events.push(event)

  expect(events).toEqual([])
})

test('events arrive whole, although the server cuts characters and frames into chunks', async () => {
  const bytes = Buffer.from(start() + text('grüße 🦙') + ending('end_turn'))
  const chunks = [...bytes].map((byte) => Uint8Array.of(byte))

  expect((await answer(stream(...chunks))).text).toBe('grüße 🦙')
})

describe('faults', () => {
  const textOf = (event: GenerateEvent): string => (event.type === 'text' ? event.text : '')

  test.each<[string, RegExp, readonly string[]]>([
    ['invalid JSON', /it is no JSON/, ['data: {"type":\n\n']],
    ['a text that is a number', /`text` is no string/, [delta(0, { type: 'text_delta', text: 5 })]],
    ['a negative count', /`output_tokens` is no count/, [start({ output_tokens: -1 })]],
    ['an end without a reason', /`stop_reason`/, [start(), frame({ type: 'message_stop' })]],
    ['an end before the last event', /ended before the answer was complete/, [start(), text('Hal')]],
  ])('%s is an invalid response', async (_, message, chunks) => {
    await expect(answer(stream(...chunks))).rejects.toMatchObject({
      ...{ code: 'upstream', message: expect.stringMatching(message) },
    })
  })

  test('an error within the answer follows what came before, and its text stays hidden', async () => {
    const error = { type: 'overloaded_error', message: 'secret' }
    const { engine } = await stubUpstream(
      'anthropic',
      stream(start() + text('Hal') + frame({ type: 'error', error })),
    )
    let seen = ''
    const read = async () => {
      for await (const event of engine.generate(request, call)) seen += textOf(event)
    }

    await expect(read()).rejects.toMatchObject({
      ...{ code: 'overloaded', message: expect.not.stringContaining('secret') },
    })
    expect(seen).toBe('Hal')
  })

  test.each([
    ['invalid_request_error', 'invalid_request'],
    ['not_found_error', 'not_found'],
    ['rate_limit_error', 'overloaded'],
    ['api_error', 'upstream'],
  ])('an event of the error %s is the error %s', async (type, code) => {
    const error = { type, message: 'secret' }

    await expect(answer(stream(frame({ type: 'error', error })))).rejects.toMatchObject({ code })
  })

  test('a connection that is cut off is an error', async () => {
    const cut: Respond = (response) => {
      response.writeHead(200)
      response.write(start() + text('Hal'), () => response.destroy())
    }

    await expect(answer(cut)).rejects.toMatchObject({
      ...{ code: 'upstream', message: 'The connection to the upstream server was lost.' },
    })
  })

  test.each([
    [401, {}, { code: 'upstream', details: { setup: true } }],
    [404, {}, { code: 'not_found', details: { model: 'm' } }],
    [429, { 'retry-after': '7' }, { code: 'overloaded', details: { retryAfterMs: 7_000 } }],
    [529, {}, { code: 'overloaded' }],
    [400, {}, { code: 'invalid_request' }],
  ])('status %i is a typed error without the text of the server', async (status, headers, expected) => {
    const refuse: Respond = (response) => response.writeHead(status, headers).end('{"error":"secret"}')

    const error = await answer(refuse).catch((cause: unknown) => cause)

    expect(error).toMatchObject(expected)
    expect((error as Error).message).not.toContain('secret')
  })

  test('a prompt that is too long names its tokens', async () => {
    const message = 'prompt is too long: 210000 tokens > 200000 maximum'
    const refuse: Respond = (response) =>
      response.writeHead(400).end(JSON.stringify({ type: 'error', error: { message } }))

    await expect(answer(refuse)).rejects.toMatchObject({
      ...{ code: 'context_length', details: { inputTokens: 210_000, contextSize: 200_000 } },
    })
  })
})

test('a count comes from the server, and is estimated if it has no route for it', async () => {
  const counting = await stubUpstream('anthropic', (response) => response.end('{"input_tokens":42}'))
  expect(await counting.engine.countTokens(request, call)).toBe(42)
  expect(counting.requests).toMatchObject([{ path: '/v1/messages/count_tokens' }])

  const plain = await stubUpstream('anthropic', (response) => response.writeHead(404).end())
  expect(await plain.engine.countTokens(request, call)).toBeGreaterThan(0)
})

test('all pages of the list of models are read', async () => {
  const pages = [
    {
      data: [
        {
          ...{ id: 'claude-a/1', created_at: '2026-01-02T00:00:00Z', max_input_tokens: 1_000 },
          capabilities: { thinking: { supported: true }, image_input: { supported: true } },
        },
      ],
      ...{ has_more: true, last_id: 'claude-a/1' },
    },
    { data: [{ id: 'b', max_input_tokens: null, capabilities: null }], has_more: false, last_id: 'b' },
  ]
  const { engine, requests } = await stubUpstream('anthropic', (response, { path }) =>
    response.end(JSON.stringify(pages[path.includes('after_id') ? 1 : 0])),
  )

  const models = await engine.listModels?.()

  expect(models).toMatchObject([
    {
      ...{ name: 'claude-a/1', modifiedAt: new Date('2026-01-02T00:00:00Z') },
      details: { contextSize: 1_000, capabilities: ['completion', 'tools', 'thinking', 'vision'] },
    },
    { name: 'b', details: { capabilities: ['completion', 'tools'] } },
  ])
  expect(requests.map(({ path }) => path)).toEqual([
    '/v1/models?limit=1000',
    '/v1/models?limit=1000&after_id=claude-a%2F1',
  ])
})

test('no prompt is counted for a cache that the API cannot look into', () => {
  const url = 'http://127.0.0.1:1'

  expect(upstreamEngine({ url, api: 'anthropic' }).countCachedTokens).toBeUndefined()
  expect(upstreamEngine({ url, api: 'modelmount' }).countCachedTokens).toBeDefined()
})
