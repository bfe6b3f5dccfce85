import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { sendChunks, stubUpstream } from '../../../../../../test/support/upstream-stub.ts'
import { collect, type GenerateEvent, type GenerateResult } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'

const request: GenerateRequest = {
  model: 'm',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
}
const call = { signal: new AbortController().signal }

const line = (fields: object): string => `${JSON.stringify({ model: 'm', done: false, ...fields })}\n`
const message = (fields: object, extra: object = {}) =>
  line({ message: { role: 'assistant', content: '', ...fields }, ...extra })
const end = (fields: object = {}) =>
  message({}, { done: true, done_reason: 'stop', prompt_eval_count: 7, eval_count: 3, ...fields })

type Respond = (response: ServerResponse) => void
const stream =
  (...chunks: readonly (string | Uint8Array)[]): Respond =>
  (response) =>
    sendChunks(response.writeHead(200, { 'content-type': 'application/x-ndjson' }), chunks)

async function answer(respond: Respond, changes: Partial<GenerateRequest> = {}): Promise<GenerateResult> {
  const { engine } = await stubUpstream('ollama', respond)
  return collect(engine.generate({ ...request, ...changes }, call))
}

test('lines become events, and the counts of the server are the usage', async () => {
  const calls = [
    { id: 'call_a', function: { name: 'look', arguments: { at: 1 } } },
    { function: { name: 'stop' } },
  ]
  const all = await answer(
    stream(
      message({ thinking: 'Hm.' }) + message({}),
      message({ content: 'It is' }) + message({ content: ' here.' }),
      message({ tool_calls: calls }),
      end(),
    ),
  )

  expect(all).toMatchObject({
    ...{ text: 'It is here.', reasoning: 'Hm.', finishReason: 'tool-calls' },
    toolCalls: [
      { id: 'call_a', name: 'look', arguments: '{"at":1}' },
      { id: expect.stringMatching(/^call_.{10}/), name: 'stop', arguments: '{}' },
    ],
    usage: { inputTokens: 7, outputTokens: 3 },
  })
  expect(all.usage.isEstimated).toBeUndefined()
})

test('calls in the last line come before the end', async () => {
  const tool_calls = [{ id: 'a', function: { name: 'look', arguments: {} } }]
  const all = await answer(stream(line({ message: { content: 'Well', tool_calls }, done: true })))

  expect(all).toMatchObject({ text: 'Well', toolCalls: [{ name: 'look' }], finishReason: 'tool-calls' })
})

test('usage that the server leaves out is an estimate', async () => {
  const { usage } = await answer(stream(message({ content: 'a' }), line({ done: true, eval_count: 1 })))

  expect(usage).toMatchObject({ outputTokens: 1, isEstimated: true })
  expect(usage.inputTokens).toBeGreaterThan(0)
})

test('an answer of the generate route has its text and tokens', async () => {
  const chunks = [
    line({ response: 'a' }),
    line({ response: '', done: true, done_reason: 'length', context: [1, 2] }),
  ]
  const input = { kind: 'text', prompt: ['Once'] } as const
  const all = await answer(stream(...chunks), { input, returnTokens: true })

  expect(all).toMatchObject({ text: 'a', finishReason: 'length', tokens: [1, 2] })
})

test('logprobs belong to the text of their line', async () => {
  const logprob = { token: 'a', logprob: -0.5, bytes: [97] }
  const all = await answer(
    stream(
      message({ content: 'a' }, { logprobs: [{ ...logprob, top_logprobs: [logprob] }] }),
      message({}, { logprobs: [{ token: 'ü', logprob: -1 }] }),
      end(),
    ),
    { logprobs: 1 },
  )

  expect(all.logprobs).toMatchObject([
    { text: 'a', logprob: -0.5, bytes: [97], top: [{ text: 'a' }] },
    { text: 'ü', logprob: -1, bytes: [...Buffer.from('ü')], top: [] },
  ])
})

test('lines arrive whole, although the server cuts characters and lines into chunks', async () => {
  const bytes = Buffer.from(message({ content: 'grüße 🦙' }) + end())

  expect((await answer(stream(...[...bytes].map((byte) => Uint8Array.of(byte))))).text).toBe('grüße 🦙')
})

describe('faults', () => {
  const textOf = (event: GenerateEvent): string => (event.type === 'text' ? event.text : '')

  test.each<[string, RegExp, readonly string[]]>([
    ['invalid JSON', /it is no JSON/, ['{"message":\n']],
    ['a line that is no object', /no object/, ['[]\n']],
    ['a text that is a number', /the text is no string/, [message({ content: 5 })]],
    ['a call without a name', /the name of a tool/, [message({ tool_calls: [{ function: {} }] })]],
    ['a count that is a text', /`eval_count` is no count/, [end({ eval_count: 'a' })]],
    ['tokens that are texts', /`context`/, [end({ context: ['a'] })]],
    ['a logprob without a token', /`token`/, [message({}, { logprobs: [{}] })]],
    ['an end before the last line', /ended before the answer was complete/, [message({ content: 'Hal' })]],
  ])('%s is an invalid response', async (_, expected, chunks) => {
    await expect(answer(stream(...chunks))).rejects.toMatchObject({
      ...{ code: 'upstream', message: expect.stringMatching(expected) },
    })
  })

  test('an error within the answer follows what came before, and its text stays hidden', async () => {
    const { engine } = await stubUpstream(
      'ollama',
      stream(`${message({ content: 'Hal' })}{"error":"secret"}\n`),
    )
    let seen = ''
    const read = async () => {
      for await (const event of engine.generate(request, call)) seen += textOf(event)
    }

    await expect(read()).rejects.toMatchObject({
      ...{ code: 'upstream', message: expect.not.stringContaining('secret') },
    })
    expect(seen).toBe('Hal')
  })

  test.each([
    [401, {}, { code: 'upstream', details: { setup: true } }],
    [404, {}, { code: 'not_found', details: { model: 'm' } }],
    [429, { 'retry-after': '7' }, { code: 'overloaded', details: { retryAfterMs: 7_000 } }],
    [503, {}, { code: 'overloaded' }],
    [400, {}, { code: 'invalid_request' }],
  ])('status %i is a typed error without the text of the server', async (status, headers, expected) => {
    const error = await answer((response) =>
      response.writeHead(status, headers).end('{"error":"secret"}'),
    ).catch((cause: unknown) => cause)

    expect(error).toMatchObject(expected)
    expect((error as Error).message).not.toContain('secret')
  })
})

describe('embeddings', () => {
  const embed = async (body: object, inputs: readonly (string | readonly number[])[] = ['a', 'b']) => {
    const { engine, requests } = await stubUpstream('ollama', (response) =>
      response.end(JSON.stringify(body)),
    )
    const result = await engine.embed({ model: 'm', inputs, dimensions: 2, load: { contextSize: 512 } }, call)
    return { result, requests }
  }

  test('vectors and counts come from the server', async () => {
    const embeddings = [
      [0, 1],
      [1, 0],
    ]
    const { result, requests } = await embed({ embeddings, prompt_eval_count: 4, load_duration: 2_000_000 })

    expect(result).toMatchObject({ embeddings, inputTokens: 4, loadMs: 2 })
    expect(requests).toMatchObject([
      {
        path: '/api/embed',
        body: { model: 'm', input: ['a', 'b'], truncate: false, dimensions: 2, options: { num_ctx: 512 } },
      },
    ])
  })

  test.each([
    [{ embeddings: [[0, 1]] }],
    [{ embeddings: [[0, 'a'], [1]] }],
    [{ embeddings: [[], [1]] }],
    [{}],
  ])('%j is an invalid response', async (body) => {
    await expect(embed(body)).rejects.toMatchObject({ code: 'upstream' })
  })

  test('token ids are rejected', async () => {
    await expect(embed({}, [[1]])).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param: 'input' },
    })
  })
})

test('the list of models has their details, which are read once', async () => {
  const tag = {
    ...{ name: 'a:latest', digest: 'd1', size: 10, modified_at: '2026-01-02T00:00:00Z' },
    details: { family: 'llama', parameter_size: '7B', quantization_level: 'Q4_K_M' },
    capabilities: ['completion'],
  }
  const shown = {
    capabilities: ['completion', 'tools', 'thinking', 'news'],
    model_info: { 'general.architecture': 'llama', 'llama.context_length': 131_072 },
  }
  const { engine, requests } = await stubUpstream('ollama', (response, { path, body }) => {
    if (path === '/api/tags') return response.end(JSON.stringify({ models: [tag, { name: 'broken' }] }))
    const { model } = body as { readonly model: string }
    return model === 'broken' ? response.writeHead(500).end() : response.end(JSON.stringify(shown))
  })

  expect(await engine.listModels?.()).toMatchObject([
    {
      ...{ name: 'a:latest', digest: 'd1', sizeBytes: 10, modifiedAt: new Date('2026-01-02T00:00:00Z') },
      details: {
        ...{ architecture: 'llama', parameterSize: '7B', quantization: 'Q4_K_M', contextSize: 131_072 },
        capabilities: ['completion', 'tools', 'thinking'],
      },
    },
    { name: 'broken', details: { capabilities: ['completion', 'tools'] } },
  ])
  expect(requests.map(({ path }) => path).sort()).toEqual(['/api/show', '/api/show', '/api/tags'])
})
