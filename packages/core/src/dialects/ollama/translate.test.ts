import { expect, test } from 'vitest'
import type * as neutral from '../../engine/request.ts'
import type { Capability, ModelDetails } from '../../models/gguf/model-details.ts'
import { parse } from '../parse.ts'
import { createIssueFormatter } from './issue-formatter.ts'
import * as schema from './schema.ts'
import { toChatInput, toGenerateRequest, toLoad, toPrompt } from './translate.ts'

const detailsWith = (...capabilities: Capability[]): ModelDetails => ({
  architecture: 'llama',
  parameterCount: 1,
  parameterSize: '1',
  quantization: 'F16',
  capabilities,
  metadata: {},
  tensors: [],
})
const plain = detailsWith('completion')
const thinker = detailsWith('thinking', 'completion')
const filler = detailsWith('insert', 'completion')
const caller = detailsWith('tools', 'completion')

/** Validates a body with the schema. */
const bodyOf = (fields: object): schema.ChatRequest =>
  parse(schema.ChatRequest, { model: 'tiny', ...fields }, createIssueFormatter('ChatRequest'))
const promptOf = (fields: object) =>
  toPrompt(parse(schema.OllamaGenerateRequest, fields, createIssueFormatter('GenerateRequest')))

const input = { kind: 'text', prompt: ['Hi'] } as const
const translate = (fields: object, details: ModelDetails | undefined = plain): neutral.GenerateRequest =>
  toGenerateRequest(bodyOf(fields), input, details)

test("a minimal request is sampled with Ollama's defaults", () => {
  expect(translate({})).toEqual({
    model: 'tiny',
    input,
    sampling: {},
    defaultSampling: { temperature: 0.8, topK: 40, topP: 0.9, minP: 0 },
    overflow: 'truncate',
    load: {},
  })
})

test('sampling options are mapped to engine options', () => {
  const { sampling } = translate({
    options: {
      temperature: 0,
      top_k: 0,
      top_p: 1,
      min_p: 0.1,
      seed: 0,
      repeat_penalty: 1.1,
      repeat_last_n: 0,
      presence_penalty: 0,
      frequency_penalty: -1,
    },
  })

  expect(sampling).toEqual({
    temperature: 0,
    topK: 0,
    topP: 1,
    minP: 0.1,
    seed: 0,
    repeatPenalty: 1.1,
    repeatLastN: 0,
    presencePenalty: 0,
    frequencyPenalty: -1,
  })
})

test('a negative seed is random', () => {
  expect(translate({ options: { seed: -1 } }).sampling).toHaveProperty('seed', 'random')
})

test.each([
  [{}, undefined],
  [{ num_predict: 5 }, 5],
  [{ num_predict: -1 }, 2 ** 31 - 1],
  [{ num_predict: -2 }, 2 ** 31 - 1],
])('the options %j limit the answer to %s tokens', (options, maxTokens) => {
  expect(translate({ options }).maxTokens).toBe(maxTokens)
})

test.each([
  [{}, undefined],
  [{ stop: [] }, []],
  [{ stop: [''] }, undefined],
  [{ stop: ['a', '', 'b'] }, ['a', 'b']],
])('the options %j set the stop sequences %j', (options, stop) => {
  expect(translate({ options }).stop).toEqual(stop)
})

test.each([
  [{}, 'truncate'],
  [{ truncate: true }, 'truncate'],
  [{ truncate: false }, 'error'],
] as const)('with %j, the overflow of a too long prompt is handled by: %s', (fields, overflow) => {
  expect(translate(fields).overflow).toBe(overflow)
})

test.each([
  [{}, {}],
  [{ options: { num_ctx: 2_048 } }, { contextSize: 2_048 }],
  [{ options: { num_ctx: 1 } }, { contextSize: 16 }],
  [{ options: { num_ctx: 0 } }, {}],
  [{ options: { num_ctx: -1 } }, {}],
  [{ keep_alive: 0 }, { keepAlive: 0 }],
  [{ keep_alive: -1 }, { keepAlive: 'forever' }],
  [
    { keep_alive: '10m', options: { num_ctx: 4_096 } },
    { contextSize: 4_096, keepAlive: 600_000 },
  ],
])('%j sets the load options %j', (fields, load) => {
  expect(toLoad(bodyOf(fields))).toEqual(load)
})

test.each([
  [undefined, true],
  [true, true],
  ['high', true],
  [false, false],
])('`think` of %j sets `reasoning` to %j for a model with reasoning', (think, reasoning) => {
  expect(translate({ think }, thinker).reasoning).toBe(reasoning)
})

test.each([[undefined], [false]])('`think` of %j is ignored for a model without reasoning', (think) => {
  expect(translate({ think })).not.toHaveProperty('reasoning')
})

test.each([[true], ['low']])('`think` of %j is rejected for a model without reasoning', (think) => {
  expect(() => translate({ think })).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: '"tiny" does not support thinking' }),
  )
})

test.each([
  [undefined, undefined],
  [true, true],
  ['max', true],
  [false, false],
])('`think` of %j sets `reasoning` to %j for an unknown model', (think, reasoning) => {
  expect(toGenerateRequest(bodyOf({ think }), input, undefined).reasoning).toBe(reasoning)
})

test.each<[object, object]>([
  [{ prompt: 'Hi' }, { kind: 'text', prompt: ['Hi'] }],
  [{}, { kind: 'text', prompt: [''] }],
  [
    { prompt: 'Hi', system: 'Be brief.' },
    { kind: 'text', prompt: ['Hi'], system: 'Be brief.' },
  ],
  [
    { prompt: 'Hi', system: '' },
    { kind: 'text', prompt: ['Hi'] },
  ],
  [
    { prompt: 'Hi', context: [1, 2] },
    { kind: 'text', prompt: [[1, 2], 'Hi'], messages: [] },
  ],
  [
    { prompt: 'Hi', context: [] },
    { kind: 'text', prompt: ['Hi'], messages: [] },
  ],
  [
    { prompt: 'Hi', template: '{{ .Prompt }}' },
    { kind: 'text', prompt: ['Hi'], template: '{{ .Prompt }}' },
  ],
  [
    { prompt: 'Hi', template: '' },
    { kind: 'text', prompt: ['Hi'] },
  ],
  [
    { prompt: 'Hi', raw: true, context: [] },
    { kind: 'text', prompt: ['Hi'], template: false },
  ],
])('%j becomes the prompt %j', (fields, prompt) => {
  expect(promptOf(fields)).toEqual(prompt)
})

test.each([{ system: 'Be brief.' }, { context: [1] }, { template: '{{ .Prompt }}' }])(
  'raw mode rejects %j',
  (fields) => {
    expect(() => promptOf({ prompt: 'Hi', raw: true, ...fields })).toThrow('raw mode does not support')
  },
)

test('messages keep their order, reasoning precedes the text, and `developer` becomes `system`', () => {
  const { messages = [] } = bodyOf({
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { content: 'Hi' },
      { role: 'assistant', content: 'Hello', thinking: 'A greeting.' },
      { role: 'control' },
    ],
  })

  expect(toChatInput({ messages })).toEqual({
    kind: 'chat',
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'A greeting.' },
          { type: 'text', text: 'Hello' },
        ],
      },
      { role: 'control', content: [{ type: 'text', text: '' }] },
    ],
  })
})

test('images follow the text of their message, also in results of tools', () => {
  const image = (data: string, param: string) => ({ type: 'image', mediaType: '', data, param })
  const messages = [
    { content: 'What?', images: ['AAAA', 'BBBB'] },
    { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'look' } }] },
    { role: 'tool', content: 'Seen.', images: ['CCCC'] },
  ]
  const [asked, , seen] = toChatInput({ messages }).messages

  expect(asked?.content).toEqual([
    { type: 'text', text: 'What?' },
    image('AAAA', 'messages[0].images[0]'),
    image('BBBB', 'messages[0].images[1]'),
  ])
  expect(seen?.content).toMatchObject([
    { content: [{ text: 'Seen.' }, image('CCCC', 'messages[2].images[0]')] },
  ])
  expect(promptOf({ prompt: 'What?', images: ['AAAA'] })).toEqual({
    ...{ kind: 'text', prompt: ['What?'], images: [image('AAAA', 'images[0]')] },
  })
})

test.each([{ raw: true }, { suffix: 'b' }])('images together with %j are rejected', (fields) => {
  expect(() => promptOf({ prompt: 'a', images: ['AAAA'], ...fields })).toThrow(
    expect.objectContaining({ details: { param: 'images', issue: 'unsupported' } }),
  )
})

const conversationOf = (fields: object) => toChatInput(bodyOf(fields))
const tool = { type: 'function', function: { name: 'now' } }

test('tools keep their schemas, and a tool without one takes no arguments', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string', minLength: 1 } } }
  const weather = { type: 'function', function: { name: 'weather', description: 'By city.', parameters } }

  expect(conversationOf({ tools: [weather, tool] }).tools).toEqual([
    { name: 'weather', description: 'By city.', parameters },
    { name: 'now', parameters: { type: 'object', properties: {} } },
  ])
  expect(conversationOf({ tools: [] })).toEqual({ kind: 'chat', messages: [] })
})

const made = (name: string, more: object = {}) => ({ function: { name, arguments: {} }, ...more })

test('calls follow the text, and each call gets an id', () => {
  const call = { function: { name: 'weather', arguments: { city: 'Paris', days: [1, 2] } } }

  const { messages } = conversationOf({
    messages: [
      { role: 'assistant', content: 'Wait.', thinking: 'Hm.', tool_calls: [call, made('now', { id: 'x' })] },
      { role: 'assistant', content: '', tool_calls: [made('now')] },
    ],
  })

  expect(messages.map(({ content }) => content)).toEqual([
    [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Wait.' },
      { type: 'tool-call', id: 'call_0', name: 'weather', arguments: '{"city":"Paris","days":[1,2]}' },
      { type: 'tool-call', id: 'x', name: 'now', arguments: '{}' },
    ],
    [{ type: 'tool-call', id: 'call_1', name: 'now', arguments: '{}' }],
  ])
})

test.each([
  ['in the order of the calls', [{}, {}], ['call_0 a', 'call_1 b']],
  ['by its name', [{ tool_name: 'b' }, { tool_name: 'a' }], ['call_1 b', 'call_0 a']],
  ['by its id', [{ tool_call_id: 'call_1' }, {}], ['call_1 b', 'call_0 a']],
  ['by a known id or name only', [{ tool_call_id: 'y' }, { tool_name: 'c' }], ['y undefined', 'undefined c']],
  ['unless all calls are answered', [{}, {}, {}], ['call_0 a', 'call_1 b', 'undefined undefined']],
])('a result is assigned to a call %s', (_, results, expected) => {
  const { messages } = conversationOf({
    messages: [
      { role: 'assistant', tool_calls: [made('a'), made('b')] },
      ...results.map((result) => ({ role: 'tool', content: '5', ...result })),
    ],
  })

  const parts = messages.slice(1).flatMap(({ content }) => content)
  expect(parts.map((part) => part.type === 'tool-result' && `${part.id} ${part.name}`)).toEqual(expected)
  expect(parts[0]).toMatchObject({ content: [{ type: 'text', text: '5' }] })
})

test('an unanswered call gets no result of another turn', () => {
  const { messages } = conversationOf({
    messages: [
      { role: 'assistant', tool_calls: [made('a')] },
      { role: 'user', content: 'Never mind.' },
      { role: 'assistant', tool_calls: [made('b')] },
      { role: 'assistant', tool_calls: [made('c')] },
      { role: 'tool', content: '5' },
      { role: 'tool', content: '6' },
    ],
  })

  expect(messages.slice(-2).map(({ content }) => content)).toMatchObject([
    [{ id: 'call_1', name: 'b' }],
    [{ id: 'call_2', name: 'c' }],
  ])
})

test('ten thousand results for a hundred thousand calls are assigned fast', () => {
  const calls = { role: 'assistant', tool_calls: Array(9_000).fill(made('a')) }
  const messages = [
    ...Array(12).fill(calls),
    ...Array(9_000).fill({ role: 'tool', tool_call_id: 'x', tool_name: 'b' }),
  ]
  const body = bodyOf({ messages })
  const startedAt = performance.now()

  toChatInput(body)

  // A search through all calls for each result would take more than ten seconds.
  expect(performance.now() - startedAt).toBeLessThan(2_000)
})

test('tools are rejected for a model without them, and passed to an unknown model', () => {
  const withTools = conversationOf({ messages: [{ content: 'Hi' }], tools: [tool] })

  expect(() => toGenerateRequest(bodyOf({}), withTools, plain)).toThrow(
    'registry.ollama.ai/library/tiny:latest does not support tools',
  )
  expect(toGenerateRequest(bodyOf({}), withTools, caller).input).toEqual(withTools)
  expect(toGenerateRequest(bodyOf({}), withTools, undefined).input).toEqual(withTools)
})

test.each<[unknown, object | undefined]>([
  [undefined, undefined],
  ['', undefined],
  ['json', { type: 'json' }],
  [{ type: 'object' }, { type: 'json-schema', schema: { type: 'object' } }],
  [{}, { type: 'json-schema', schema: {} }],
])('the format %j becomes %j', (format, expected) => {
  expect(translate({ format }).format).toEqual(expected)
})

test.each([
  [{}, undefined],
  [{ top_logprobs: 3 }, undefined],
  [{ logprobs: false, top_logprobs: 3 }, undefined],
  [{ logprobs: true }, 0],
  [{ logprobs: true, top_logprobs: 3 }, 3],
])('%j asks for logprobs with %s alternatives', (fields, logprobs) => {
  expect(translate(fields).logprobs).toBe(logprobs)
})

test.each([
  [true, undefined, 'llama'],
  ['low', 'low', 'llama'],
  ['max', 'max', 'llama'],
  ['max', 'high', 'gptoss'],
  ['medium', 'medium', 'gpt-oss'],
])('`think` of %s sets the reasoning effort %s for the architecture %s', (think, effort, architecture) => {
  const { templateOptions } = translate({ think }, { ...thinker, architecture }).input as neutral.TextInput

  expect(templateOptions?.reasoning_effort).toBe(effort)
})

test('a request with a suffix becomes an infill request', () => {
  const body = { prompt: 'a', suffix: 'c', system: 'Be brief.', context: [1] }

  expect(promptOf(body)).toEqual({ kind: 'infill', prefix: 'a', suffix: 'c' })
  expect(promptOf({ prompt: 'a', suffix: '' })).toEqual({ kind: 'text', prompt: ['a'] })
  expect(toGenerateRequest(bodyOf({}), promptOf(body), filler)).not.toHaveProperty('reasoning')
  expect(() => toGenerateRequest(bodyOf({}), promptOf(body), thinker)).toThrow(
    'registry.ollama.ai/library/tiny:latest does not support insert',
  )
  const template = '{{ .Prompt }}|{{ .Suffix }}'
  expect(toGenerateRequest(bodyOf({}), promptOf({ ...body, template }), thinker).input).toMatchObject({
    template,
  })
})
