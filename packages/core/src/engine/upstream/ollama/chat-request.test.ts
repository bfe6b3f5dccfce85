import { describe, expect, test } from 'vitest'
import type { ChatInput, GenerateRequest, InfillInput, Message, TextInput } from '../../request.ts'
import { toOllamaRequest } from './chat-request.ts'

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] })
type Fields = Readonly<Record<string, unknown>>
const bodyOf = (request: Partial<GenerateRequest> = {}, input: Partial<ChatInput> = {}): Fields =>
  toOllamaRequest({ model: 'm', input: { kind: 'chat', messages: [user('Hi')], ...input }, ...request })
    .body as Fields
const failureOf = (request: Partial<GenerateRequest>, input: Partial<ChatInput> = {}): unknown => {
  try {
    bodyOf(request, input)
  } catch (error) {
    return error
  }
  return undefined
}

test('a chat keeps its messages, reasoning, images and calls', () => {
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA', param: 'x' } as const
  const messages: readonly Message[] = [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.', cache: '1h' }] },
    { role: 'user', content: [image, { type: 'text', text: 'Look' }, { type: 'text', text: ' here.' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'tool-call', id: 'call_1', name: 'look', arguments: '{"at":1}' },
        { type: 'tool-call', id: 'call_2', name: 'stop', arguments: '{}' },
      ],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', id: 'call_1', content: [{ type: 'text', text: 'A dog' }, image] }],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', id: 'call_2', content: [{ type: 'text', text: 'No' }], isError: true },
        { type: 'text', text: 'Go on.' },
      ],
    },
  ]

  expect(toOllamaRequest({ model: 'm', input: { kind: 'chat', messages } })).toEqual({
    path: '/api/chat',
    body: {
      ...{ model: 'm', stream: true, truncate: false, options: {} },
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Look here.', images: ['AAAA'] },
        {
          ...{ role: 'assistant', content: '', thinking: 'Hm.' },
          tool_calls: [
            { id: 'call_1', function: { name: 'look', arguments: { at: 1 } } },
            { id: 'call_2', function: { name: 'stop', arguments: {} } },
          ],
        },
        { role: 'tool', content: 'A dog', tool_name: 'look', tool_call_id: 'call_1', images: ['AAAA'] },
        { role: 'tool', content: 'Error: No', tool_name: 'stop', tool_call_id: 'call_2' },
        { role: 'tool', content: 'Go on.' },
      ],
    },
  })
})

test('settings of sampling, limits and the load become options', () => {
  const body = bodyOf({
    ...{ maxTokens: 9, defaultMaxTokens: 5, stop: ['END'], overflow: 'truncate', logprobs: 2 },
    sampling: {
      ...{ temperature: 0.5, topP: 0.9, topK: 0, minP: 0.1, seed: 7, repeatPenalty: 1.1, repeatLastN: -1 },
      ...{ presencePenalty: 1, frequencyPenalty: 2 },
    },
    defaultSampling: { temperature: 0.1 },
    load: { contextSize: 4_096, defaultContextSize: 512, keepAlive: 1_500 },
  })

  expect(body).toMatchObject({
    ...{ truncate: true, logprobs: true, top_logprobs: 2, keep_alive: '1500ms' },
    options: {
      ...{ temperature: 0.5, top_p: 0.9, top_k: 0, min_p: 0.1, seed: 7, repeat_penalty: 1.1 },
      ...{ repeat_last_n: -1, presence_penalty: 1, frequency_penalty: 2, num_predict: 9, stop: ['END'] },
      num_ctx: 4_096,
    },
  })
  expect(
    bodyOf({ maxTokens: 2_147_483_647, sampling: { seed: 'random' }, load: { keepAlive: 'forever' } }),
  ).toMatchObject({ keep_alive: -1, options: { seed: -1, num_predict: -1 } })
})

test.each([
  [{}, undefined, undefined],
  [{ reasoning: 'auto' }, undefined, undefined],
  [{ reasoning: true }, undefined, true],
  [{ reasoning: false }, 'high', false],
  [{ reasoning: true }, 'high', 'high'],
  [{ reasoning: 'auto' }, 'low', 'low'],
] as const)('%o with the effort %s is thought as %s', (request, effort, think) => {
  const templateOptions = effort === undefined ? {} : { reasoning_effort: effort }

  expect(bodyOf(request, { templateOptions }).think).toBe(think)
})

test('JSON and JSON schemas constrain the answer', () => {
  expect(bodyOf({ format: { type: 'json' } }).format).toBe('json')
  expect(bodyOf({ format: { type: 'json-schema', schema: { type: 'array' } } }).format).toEqual({
    type: 'array',
  })
})

test('the model sees only the tools that it may call', () => {
  const tools = ['a', 'b'].map((name) => ({ name, parameters: { type: 'object' } }))

  expect(bodyOf({}, { tools, toolChoice: { mode: 'auto', names: ['b'] } }).tools).toEqual([
    { type: 'function', function: { name: 'b', parameters: { type: 'object' } } },
  ])
  expect(bodyOf({}, { tools, toolChoice: { mode: 'none', parallel: false } }).tools).toBeUndefined()
})

describe('text prompts', () => {
  const requestOf = (input: Omit<TextInput, 'kind'>) =>
    toOllamaRequest({ model: 'm', input: { kind: 'text', ...input } })

  test.each<[string, Omit<TextInput, 'kind'>, object]>([
    ['a text', { prompt: ['a', 'b'], system: 's' }, { prompt: 'ab', system: 's' }],
    ['a raw text', { prompt: ['a'], template: false }, { prompt: 'a', raw: true }],
    ['a template', { prompt: ['a'], template: '{{ .Prompt }}' }, { prompt: 'a', template: '{{ .Prompt }}' }],
    ['earlier tokens', { prompt: [[1, 2], 'a'] }, { prompt: 'a', context: [1, 2] }],
    ['no earlier messages', { prompt: ['a'], messages: [] }, { prompt: 'a', context: [] }],
  ])('%s is a prompt', (_, input, expected) => {
    const { path, body } = requestOf(input)

    expect(path).toBe('/api/generate')
    expect(body).toEqual({ model: 'm', stream: true, truncate: false, options: {}, ...expected })
  })

  test('a text after earlier messages is a chat', () => {
    const { path, body } = requestOf({ prompt: ['b'], messages: [user('a')], system: 's' })

    expect(path).toBe('/api/chat')
    expect(body).toMatchObject({ messages: [{ content: 's' }, { content: 'a' }, { content: 'b' }] })
  })

  test('infill has a suffix', () => {
    const input = { kind: 'infill', prefix: 'a', suffix: 'b', template: '{{ .Suffix }}' } as const

    expect(toOllamaRequest({ model: 'm', input })).toMatchObject({
      ...{ path: '/api/generate', body: { prompt: 'a', suffix: 'b', template: '{{ .Suffix }}' } },
    })
  })
})

const text = (input: Omit<TextInput, 'kind'>) => ({ input: { kind: 'text', ...input } }) as const
const infill = (input: Omit<InfillInput, 'kind'>) => ({ input: { kind: 'infill', ...input } }) as const
const tool = { name: 'a', parameters: {} }
test.each<[string, Partial<GenerateRequest>, Partial<ChatInput>?]>([
  ['sampling.logitBias', { sampling: { logitBias: [[1, 1]] } }],
  ['sampling.dry', { sampling: { dry: { strength: 1 } } }],
  ['sampling.xtc', { sampling: { xtc: { probability: 0.5, threshold: 0.1 } } }],
  ['sampling.ignoreEos', { sampling: { ignoreEos: true } }],
  ['sampling.minTokens', { sampling: { minTokens: 1 } }],
  ['promptLogprobs', { promptLogprobs: true }],
  ['maxTokens', { maxTokens: 0 }],
  ['format', { format: { type: 'json-schema', schema: true } }],
  ['format', { format: { type: 'grammar', source: 'root ::= "a"' } }],
  ['format', { format: { type: 'regex', pattern: 'a' } }],
  ['format', { format: { type: 'choice', choices: ['a'] } }],
  ['template', {}, { template: '{{ .Prompt }}' }],
  ['template', text({ prompt: ['a'], messages: [user('a')], template: '{{ .Prompt }}' })],
  ['templateOptions.reasoning_effort', {}, { templateOptions: { reasoning_effort: 'xhigh' } }],
  ['templateOptions.style', {}, { templateOptions: { style: 'loud' } }],
  ['promptEnd', {}, { promptEnd: 'none' }],
  ['toolChoice', {}, { tools: [tool], toolChoice: { mode: 'required' } }],
  ['toolChoice.parallel', {}, { tools: [tool], toolChoice: { mode: 'auto', parallel: false } }],
  ['tools[0].strict', {}, { tools: [{ ...tool, strict: true }] }],
  [
    'messages[0]',
    {},
    {
      messages: [{ role: 'assistant', content: [{ type: 'tool-call', id: 'a', name: 'b', arguments: '[' }] }],
    },
  ],
  ['prompt', text({ prompt: [[1], 'a'], template: false })],
  ['prompt', text({ prompt: [[1], 'a'], messages: [user('a')] })],
  ['messages', text({ prompt: ['a'], messages: [user('a')], template: false })],
])('%s of %o is rejected, since the API lacks it', (param, request, input) => {
  expect(failureOf(request, input)).toMatchObject({
    ...{ code: 'invalid_request', details: { param, issue: 'unsupported' } },
  })
})

test.each<[string, Partial<GenerateRequest>]>([
  ['prompt', text({ prompt: [] })],
  ['prompt', infill({ prefix: '', suffix: 'b' })],
  ['messages', { input: { kind: 'chat', messages: [] } }],
])('an empty %s is rejected, since the server would only load the model', (param, request) => {
  expect(failureOf(request)).toMatchObject({ code: 'invalid_request', details: { param, issue: 'empty' } })
})
