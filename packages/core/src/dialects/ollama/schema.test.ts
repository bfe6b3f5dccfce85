import { expect, test } from 'vitest'
import { parse } from '../parse.ts'
import { createIssueFormatter } from './issue-formatter.ts'
import { ChatRequest, EmbeddingsRequest, EmbedRequest, OllamaGenerateRequest, ShowRequest } from './schema.ts'

const generate = (body: unknown): OllamaGenerateRequest =>
  parse(OllamaGenerateRequest, body, createIssueFormatter('GenerateRequest'))
const chat = (body: unknown): ChatRequest => parse(ChatRequest, body, createIssueFormatter('ChatRequest'))
const call = (values: unknown): object => ({ function: { name: 'f', arguments: values } })

const taking = (properties: unknown): object => ({ function: { name: 'f', parameters: { properties } } })

test('an empty object and null are valid bodies', () => {
  expect(generate({})).toEqual({})
  expect(chat({})).toEqual({})
  expect(chat(null)).toEqual({})
  expect(parse(ShowRequest, null, createIssueFormatter('ChatRequest'))).toEqual({})
})

test('every field of a generate request is parsed', () => {
  const body = {
    model: 'tiny',
    prompt: 'Hi',
    system: 'Be brief.',
    context: [0, 5, 2_147_483_647],
    raw: true,
    stream: false,
    think: 'low',
    truncate: false,
    shift: true,
    format: 'json',
    logprobs: true,
    top_logprobs: 20,
    suffix: 'end',
    _debug_render_only: true,
  }

  expect(generate({ ...body, keep_alive: '5m' })).toEqual({ ...body, keep_alive: 300_000 })
})

test('every option is parsed, even options that only affect speed', () => {
  const options = {
    temperature: 0,
    top_k: 0,
    top_p: 1,
    min_p: 0,
    seed: -1,
    repeat_penalty: 1.1,
    repeat_last_n: -1,
    presence_penalty: -1,
    frequency_penalty: 1,
    stop: ['\n'],
    num_predict: -2,
    num_ctx: 4_096,
    typical_p: 1,
    num_keep: 4,
    num_batch: 512,
    num_gpu: 99,
    main_gpu: 0,
    num_thread: 8,
    draft_num_predict: 4,
    use_mmap: true,
  }

  expect(chat({ options }).options).toEqual(options)
})

test('unknown options are ignored', () => {
  expect(chat({ options: { mirostat: 2, tfs_z: 1 }, extra: 1 })).toEqual({ options: {} })
})

test.each([
  'model',
  'stream',
  'options',
  'keep_alive',
  'think',
  'truncate',
  'shift',
  'format',
  'logprobs',
  'messages',
  'tools',
])('%s may be null, which means absent', (field) => {
  expect(chat({ [field]: null })[field as keyof ChatRequest]).toBeUndefined()
})

test('field names ignore case, and the last duplicate counts', () => {
  expect(generate({ Model: 'a', PROMPT: 'Hi', model: 'b' })).toEqual({ model: 'b', prompt: 'Hi' })
  expect(generate({ model: 'b', MODEL: 'a' })).toEqual({ model: 'a' })
  expect(chat({ Messages: [{ Role: 'system', CONTENT: 'Hi' }] })).toEqual({
    messages: [{ role: 'system', content: 'Hi' }],
  })
})

test('tools, calls and results of a chat are parsed', () => {
  const parameters = { type: 'object', properties: { Name: { type: 'string' } } }
  const body = {
    messages: [
      { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: { Name: 'x' } } }] },
      { role: 'tool', content: '5', tool_name: 'f', tool_call_id: 'a' },
    ],
    tools: [{ type: 'function', function: { name: 'f', description: 'Does it.', parameters } }],
  }

  expect(chat(body)).toEqual(body)
  expect(chat({ tools: [{ Function: { NAME: 'f' } }] })).toEqual({ tools: [{ function: { name: 'f' } }] })
})

test('parameters of a tool may be any schema with valid properties', () => {
  for (const properties of [
    null,
    {},
    { a: true, b: null, c: { type: ['string', 'null'] }, d: { enum: [5] } },
  ])
    expect(chat({ tools: [taking(properties)] })).toEqual({ tools: [taking(properties)] })
})

test('the input to embed is a text or a list of texts', () => {
  const embed = (input: unknown) => parse(EmbedRequest, { input }, createIssueFormatter('ChatRequest')).input

  expect([embed('a'), embed(['a', '']), embed([]), embed(null)]).toEqual(['a', ['a', ''], [], undefined])
  expect(
    parse(
      EmbedRequest,
      { Dimensions: 8.5, truncate: false, keep_alive: 0 },
      createIssueFormatter('ChatRequest'),
    ),
  ).toEqual({
    dimensions: 8,
    truncate: false,
    keep_alive: 0,
  })
  expect(
    parse(
      EmbeddingsRequest,
      { prompt: 'a', input: 'b', options: { num_ctx: 64 } },
      createIssueFormatter('ChatRequest'),
    ),
  ).toEqual({
    prompt: 'a',
    options: { num_ctx: 64 },
  })
})

test('fractions are truncated toward zero', () => {
  const { options } = chat({ options: { top_k: 40.9, num_predict: -1.9, num_ctx: 100.5 } })

  expect(options).toEqual({ top_k: 40, num_predict: -1, num_ctx: 100 })
})

test.each([
  ['User', 'user'],
  ['ASSISTANT', 'assistant'],
  ['', 'user'],
  ['control', 'control'],
])('the role %j becomes %j', (role, read) => {
  expect(chat({ messages: [{ role, content: 'Hi' }] }).messages).toEqual([{ role: read, content: 'Hi' }])
})

test('all fields of a message are optional', () => {
  const messages = [{}, { role: null, content: null, thinking: null, images: null, tool_calls: null }]

  expect(chat({ messages }).messages).toEqual([{}, {}])
})

test.each<[string, object]>([['`typical_p`', { options: { typical_p: 0.5 } }]])(
  'the error for %s names the unsupported feature: %j',
  (what, body) => {
    expect(() => chat(body)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringContaining(`${what} is not supported yet.`),
      }),
    )
  },
)

test('a message has 100 images at most', () => {
  const say = (count: number) => chat({ messages: [{ images: Array(count).fill('aGk=') }] })

  expect(say(100).messages?.[0]?.images).toHaveLength(100)
  expect(() => say(101)).toThrow('invalid messages[0].images: expected 100 items at most.')
})

test.each([
  { format: '', logprobs: false, images: [] },
  { suffix: '', template: '' },
  { format: null, suffix: null, template: null, images: null },
])('%j needs no unsupported feature and is accepted', (body) => {
  expect(generate(body)).toBeDefined()
})

test.each<[string, object]>([
  ['model', { model: 5 }],
  ['stream', { stream: 'yes' }],
  ['think', { think: 'very' }],
  ['keep_alive', { keep_alive: 'soon' }],
  ['keep_alive', { keep_alive: true }],
  ['keep_alive', { keep_alive: '1'.repeat(1_000_000) }],
  ['options', { options: 5 }],
  ['options.temperature', { options: { temperature: -1 } }],
  ['options.temperature', { options: { temperature: Number.POSITIVE_INFINITY } }],
  ['options.top_p', { options: { top_p: 1.5 } }],
  ['options.top_k', { options: { top_k: -1 } }],
  ['options.top_k', { options: { top_k: 2 ** 40 } }],
  ['options.num_ctx', { options: { num_ctx: 2 ** 25 } }],
  ['options.num_predict', { options: { num_predict: Number.NaN } }],
  ['options.repeat_penalty', { options: { repeat_penalty: -3 } }],
  ['options.repeat_last_n', { options: { repeat_last_n: -2 } }],
  ['options.stop[1]', { options: { stop: ['\n', 5] } }],
  ['options.use_mmap', { options: { use_mmap: 1 } }],
  ['messages', { messages: 'Hi' }],
  ['messages[1].content', { messages: [{}, { content: 5 }] }],
  ['messages[0].role', { messages: [{ role: 'x'.repeat(65) }] }],
  ['messages[0].tool_calls[0].function', { messages: [{ tool_calls: [{}] }] }],
  ['messages[0].tool_calls[0].function.arguments', { messages: [{ tool_calls: [call('{}')] }] }],
  ['messages[0].tool_calls[0].function.arguments', { messages: [{ tool_calls: [call([])] }] }],
  ['messages[0].tool_name', { messages: [{ role: 'tool', tool_name: 5 }] }],
  ['format', { format: 'xml' }],
  ['format', { format: [] }],
  ['format', { format: true }],
  ['logprobs', { logprobs: 1 }],
  ['top_logprobs', { top_logprobs: 21 }],
  ['tools[0].function', { tools: [{}] }],
  ['tools[0].function.name', { tools: [{ function: {} }] }],
  ['tools[0].function.name', { tools: [{ function: { name: '' } }] }],
  ['tools[0].function.name', { tools: [{ function: { name: 'x'.repeat(129) } }] }],
  ['tools[0].function.parameters', { tools: [{ function: { name: 'f', parameters: 'x' } }] }],
  ['tools[0].function.parameters.properties', { tools: [taking([])] }],
  ['tools[0].function.parameters.properties', { tools: [taking('x')] }],
  ['tools[0].function.parameters.properties.a.type', { tools: [taking({ b: {}, a: { type: 5 } })] }],
  ['tools[0].function.parameters.properties.a.type', { tools: [taking({ a: { type: ['x', null] } })] }],
  ['tools[1]', { tools: [{ function: { name: 'f' } }, null] }],
  ['tools', { tools: Array(1_025).fill({ function: { name: 'f' } }) }],
])('the error for an invalid %s names the field: %#', (param, body) => {
  expect(() => chat(body)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: expect.objectContaining({ param }) }),
  )
})

test.each([[5], [{}], [[1]], [['a', null]], [[['a']]], [true]])('%j cannot be embedded', (input) => {
  expect(() => parse(EmbedRequest, { input }, createIssueFormatter('ChatRequest'))).toThrow(/^invalid input/)
})

test.each([[['5']], [[-1]], [[0.5]], [[2 ** 31]], [[null]], [[Number.NaN]]])(
  'the context %j is rejected',
  (context) => {
    expect(() => generate({ context })).toThrow('invalid context: expected token ids.')
  },
)

test('a context of a million tokens is parsed fast, and a context over the limit is rejected', () => {
  const context = Array(1_000_000).fill(5)
  const startedAt = performance.now()
  const read = generate({ context })
  const ms = performance.now() - startedAt

  expect(read.context).toHaveLength(1_000_000)
  expect(ms).toBeLessThan(150)
  expect(() => generate({ context: Array(2 ** 24 + 1).fill(5) })).toThrow('invalid context')
})

test.each(['hello', 5, true, [], [{}]])('the body %j is rejected', (body) => {
  expect(() => generate(body)).toThrow('into Go value of type api.GenerateRequest')
})

test('show accepts `model` and `name`', () => {
  const body = { model: 'a', name: 'b', system: 'Be brief.', verbose: true }

  expect(
    parse(ShowRequest, { ...body, template: '', options: { x: 1 } }, createIssueFormatter('ChatRequest')),
  ).toMatchObject(body)
})
