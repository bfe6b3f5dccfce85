import { describe, expect, test } from 'vitest'
import type { ChatInput, GenerateRequest, Message } from '../../request.ts'
import { toCountBody, toMessagesBody } from './chat-request.ts'

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] })
const bodyOf = (request: Partial<GenerateRequest> = {}, input: Partial<ChatInput> = {}) =>
  toMessagesBody({ model: 'm', input: { kind: 'chat', messages: [user('Hi')], ...input }, ...request })
const paramOf = (request: Partial<GenerateRequest>, input: Partial<ChatInput> = {}): unknown => {
  try {
    bodyOf(request, input)
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request', details: { issue: 'unsupported' } })
    return (error as { readonly details: { readonly param: unknown } }).details.param
  }
  return undefined
}

test('a chat becomes system blocks and turns, without empty texts and reasoning', () => {
  const messages: readonly Message[] = [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.', cache: '1h' }] },
    user('Hi'),
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'A greeting.' },
        { type: 'text', text: '' },
        { type: 'text', text: 'Hello.', cache: '5m' },
      ],
    },
    { role: 'system', content: [{ type: 'text', text: 'Now in French.' }] },
    { role: 'user', content: [] },
  ]

  expect(bodyOf({}, { messages })).toEqual({
    model: 'm',
    max_tokens: 8_192,
    stream: true,
    system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'Hello.', cache_control: { type: 'ephemeral' } }],
      },
      { role: 'system', content: [{ type: 'text', text: 'Now in French.' }] },
      { role: 'user', content: '' },
    ],
  })
})

test('results of tools, with images and errors, become one message', () => {
  const call = { type: 'tool-call', name: 'look' } as const
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA', param: 'x' } as const
  const messages: readonly Message[] = [
    user('Look.'),
    {
      role: 'assistant',
      content: [
        { ...call, id: 'functions.look:0', arguments: '{"at":1}' },
        { ...call, id: 'call_2', arguments: '{}' },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-result', id: 'functions.look:0', content: [image] }] },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', id: 'call_2', content: [{ type: 'text', text: 'Broken' }], isError: true },
      ],
    },
    { role: 'user', content: [image, { type: 'text', text: 'And this?' }] },
  ]
  const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }

  expect(bodyOf({}, { messages })).toMatchObject({
    messages: [
      { role: 'user' },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'functions_look_0', name: 'look', input: { at: 1 } },
          { type: 'tool_use', id: 'call_2', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'functions_look_0', content: [{ type: 'image', source }] },
          { type: 'tool_result', tool_use_id: 'call_2', is_error: true, content: [{ text: 'Broken' }] },
        ],
      },
      { role: 'user', content: [{ type: 'image', source }, { text: 'And this?' }] },
    ],
  })
})

describe('tools', () => {
  const tools = ['a', 'b', 'c'].map((name) => ({ name, parameters: { properties: {} } }))
  const namesOf = (toolChoice: ChatInput['toolChoice']) => {
    const body = bodyOf({}, { tools, ...(toolChoice && { toolChoice }) }) as Record<string, unknown>
    return [(body.tools as { name: string }[]).map(({ name }) => name).join(''), body.tool_choice]
  }

  test('a tool has the type that the API requires, and keeps its breakpoint', () => {
    const tool = {
      name: 'a',
      description: 'A',
      parameters: { properties: {} },
      strict: true,
      cache: '5m',
    } as const

    expect(bodyOf({}, { tools: [tool] })).toMatchObject({
      tools: [
        {
          ...{ name: 'a', description: 'A', strict: true, cache_control: { type: 'ephemeral' } },
          input_schema: { type: 'object', properties: {} },
        },
      ],
    })
  })

  test.each([
    [undefined, 'abc', undefined],
    [{ mode: 'none' }, 'abc', { type: 'none' }],
    [{ mode: 'required' }, 'abc', { type: 'any' }],
    [{ mode: 'required', names: ['b'] }, 'abc', { type: 'tool', name: 'b' }],
    [{ mode: 'required', names: ['a', 'b'] }, 'ab', { type: 'any' }],
    [{ mode: 'auto', names: ['a'] }, 'a', undefined],
    [{ mode: 'auto', parallel: false }, 'abc', { type: 'auto', disable_parallel_tool_use: true }],
  ] as const)('the choice %o offers the tools %s', (choice, names, toolChoice) => {
    expect(namesOf(choice)).toEqual([names, toolChoice])
  })
})

test('sampling fields with their default values are left out, since some models reject them', () => {
  const sampling = { temperature: 1, topP: 1, topK: 0, minP: 0, presencePenalty: 0, seed: 'random' } as const
  const plain = bodyOf()

  expect(bodyOf({ sampling, logprobs: undefined as never })).toEqual(plain)
  expect(bodyOf({ sampling: { temperature: 0, topP: 0.5, topK: 3 }, stop: ['x'] })).toEqual({
    ...plain,
    ...{ temperature: 0, top_p: 0.5, top_k: 3, stop_sequences: ['x'] },
  })
})

test.each([
  [{ maxTokens: 5, defaultMaxTokens: 7 }, 5],
  [{ defaultMaxTokens: 7 }, 7],
  [{ maxTokens: 2_147_483_647 }, 8_192],
])('%o limits the answer to %i tokens', (limits, expected) => {
  expect(bodyOf(limits).max_tokens).toBe(expected)
})

test('a request for no output is no stream', () => {
  expect(bodyOf({ maxTokens: 0 })).toMatchObject({ max_tokens: 0, stream: false })
})

test('reasoning gets half of the limit as its budget, or an effort', () => {
  const thinkingOf = (request: Partial<GenerateRequest>, effort?: string): unknown => {
    const templateOptions = effort === undefined ? {} : { reasoning_effort: effort }
    const { thinking, output_config: config } = bodyOf(request, { templateOptions }) as Record<
      string,
      unknown
    >
    return { thinking, config }
  }

  expect(thinkingOf({ reasoning: true, maxTokens: 6_000 })).toEqual({
    thinking: { type: 'enabled', budget_tokens: 3_000 },
  })
  expect(thinkingOf({ reasoning: true, maxTokens: 1_500 })).toMatchObject({
    thinking: { budget_tokens: 1_024 },
  })
  expect(thinkingOf({ reasoning: true, maxTokens: 100 })).toMatchObject({ thinking: { budget_tokens: 99 } })
  expect(thinkingOf({ reasoning: 'auto' }, 'low')).toEqual({
    thinking: { type: 'adaptive' },
    config: { effort: 'low' },
  })
  expect(thinkingOf({ reasoning: 'auto' })).toEqual({})
  expect(thinkingOf({ reasoning: false })).toEqual({})
})

test('a JSON schema constrains the answer, also for a count', () => {
  const request: GenerateRequest = {
    model: 'm',
    input: { kind: 'chat', messages: [user('Hi')] },
    format: { type: 'json-schema', schema: { type: 'object' } },
  }
  const config = { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }

  expect(toMessagesBody(request)).toMatchObject(config)
  expect(toCountBody(request)).toEqual({
    ...{ model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    ...config,
  })
})

test('a text with a template becomes a message of the user', () => {
  const input = { kind: 'text', prompt: ['Once', ' more'], system: 'Be brief.' } as const

  expect(bodyOf({ input })).toMatchObject({
    system: [{ text: 'Be brief.' }],
    messages: [{ role: 'user', content: [{ text: 'Once more' }] }],
  })
})

test.each<[string, Partial<GenerateRequest>, Partial<ChatInput>?]>([
  ['sampling.temperature', { sampling: { temperature: 1.5 } }],
  ['sampling.minP', { sampling: { minP: 0.1 } }],
  ['sampling.seed', { sampling: { seed: 0 } }],
  ['sampling.repeatPenalty', { sampling: { repeatPenalty: 1.1 } }],
  ['sampling.presencePenalty', { sampling: { presencePenalty: 1 } }],
  ['sampling.frequencyPenalty', { sampling: { frequencyPenalty: 1 } }],
  ['sampling.logitBias', { sampling: { logitBias: [[1, 1]] } }],
  ['sampling.dry', { sampling: { dry: { strength: 1 } } }],
  ['sampling.xtc', { sampling: { xtc: { probability: 0.5, threshold: 0.1 } } }],
  ['sampling.ignoreEos', { sampling: { ignoreEos: true } }],
  ['sampling.minTokens', { sampling: { minTokens: 1 } }],
  ['logprobs', { logprobs: 0 }],
  ['promptLogprobs', { promptLogprobs: true }],
  ['format', { format: { type: 'json' } }],
  ['format', { format: { type: 'json-schema', schema: true } }],
  ['format', { format: { type: 'grammar', source: 'root ::= "a"' } }],
  ['format', { format: { type: 'regex', pattern: 'a' } }],
  ['format', { format: { type: 'choice', choices: ['a'] } }],
  ['template', {}, { template: '{{ .Prompt }}' }],
  ['templateOptions.reasoning_effort', {}, { templateOptions: { reasoning_effort: 'minimal' } }],
  ['templateOptions.style', {}, { templateOptions: { style: 'loud' } }],
  ['promptEnd', {}, { promptEnd: 'none' }],
  ['promptEnd', {}, { promptEnd: 'continue' }],
  ['messages[0].role', {}, { messages: [{ role: 'critic', content: [] }] }],
  ['messages[0]', {}, { messages: [{ role: 'tool', content: [{ type: 'tool-result', content: [] }] }] }],
  [
    'messages[0]',
    {},
    {
      messages: [{ role: 'assistant', content: [{ type: 'tool-call', id: 'a', name: 'b', arguments: '[' }] }],
    },
  ],
  ['prompt', { input: { kind: 'text', prompt: ['Hi'], template: false } }],
  ['prompt', { input: { kind: 'text', prompt: [[1, 2]] } }],
  ['suffix', { input: { kind: 'infill', prefix: 'a', suffix: 'b' } }],
])('%s of %o is rejected, since the API lacks it', (param, request, input) => {
  expect(paramOf(request, input)).toBe(param)
})

test('the end of the prompt that the API has passes', () => {
  const assistant: Message = { role: 'assistant', content: [{ type: 'text', text: 'Hel' }] }

  expect(paramOf({}, { promptEnd: 'generation-prompt' })).toBeUndefined()
  expect(paramOf({}, { promptEnd: 'continue', messages: [user('Hi'), assistant] })).toBeUndefined()
})
