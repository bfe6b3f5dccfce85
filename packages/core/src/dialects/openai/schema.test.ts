import { expect, test } from 'vitest'
import type { Issue } from '../../errors.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { ChatCompletionRequest } from './schema.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const minimal = { model: 'tiny', messages }
const read = (body: unknown): ChatCompletionRequest => parse(ChatCompletionRequest, body, formatIssue)

test('a model and a message are enough', () => {
  expect(read(minimal)).toEqual(minimal)
})

test('every optional field is parsed', () => {
  const body = {
    ...minimal,
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: 1,
    max_tokens: 1,
    temperature: 2,
    top_p: 1,
    stop: ['\n'],
    seed: -5,
    frequency_penalty: -2,
    presence_penalty: 2,
    logit_bias: { '50256': -100 },
    top_k: 0,
    min_p: 0,
    repeat_penalty: 1.1,
    grammar: 'root ::= "a"',
    reasoning_effort: 'low',
    response_format: { type: 'text' },
    logprobs: true,
    top_logprobs: 20,
    tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: {}, strict: true } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    parallel_tool_calls: false,
    chat_template_kwargs: { enable_thinking: true },
  }

  expect(read(body)).toEqual({ ...body, logit_bias: [[50256, -100]] })
})

test.each([
  'stream',
  'stream_options',
  'max_completion_tokens',
  'max_tokens',
  'temperature',
  'top_p',
  'stop',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'top_k',
  'min_p',
  'repeat_penalty',
  'grammar',
  'reasoning_effort',
  'response_format',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'chat_template_kwargs',
] as const)('%s may be null, which means absent', (field) => {
  const body = read({ ...minimal, [field]: null })

  expect(body[field]).toBeUndefined()
})

test('unknown fields are ignored', () => {
  expect(read({ ...minimal, mirostat_tau: 2, keep_alive: '5m' })).toEqual(minimal)
})

test.each([
  [{ role: 'system', content: 'Be brief.' }],
  [{ role: 'developer', content: 'Be brief.' }],
  [{ role: 'user', content: '' }],
  [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: '' },
      ],
    },
  ],
  [{ role: 'assistant', content: 'Hello' }],
  [{ role: 'assistant', content: [{ type: 'text', text: 'Hello' }] }],
  [{ role: 'assistant' }],
])('%j is a valid message', (message) => {
  expect(read({ ...minimal, messages: [message] }).messages).toEqual([message])
})

test('further fields that SDKs send in assistant messages are accepted', () => {
  const message = { role: 'assistant', content: null, refusal: null, tool_calls: [], function_call: null }

  const body = read({ ...minimal, messages: [message] })

  expect(body.messages).toMatchObject([{ role: 'assistant' }])
})

test('a max_tokens of -1 means no limit', () => {
  expect(read({ ...minimal, max_tokens: -1 }).max_tokens).toBeUndefined()
})

test.each<[body: object, param: string, issue: Issue]>([
  [{ messages }, 'model', 'missing'],
  [{ model: '', messages }, 'model', 'value'],
  [{ model: 'm'.repeat(1_025), messages }, 'model', 'string_too_long'],
  [{ model: 'tiny' }, 'messages', 'missing'],
  [{ model: 'tiny', messages: [] }, 'messages', 'empty'],
  [{ model: 'tiny', messages: 'Hi' }, 'messages', 'type'],
  [{ model: 'tiny', messages: ['Hi'] }, 'messages[0]', 'type'],
  [{ model: 'tiny', messages: [{ content: 'Hi' }] }, 'messages[0].role', 'missing'],
  [{ model: 'tiny', messages: [{ role: 'robot', content: 'Hi' }] }, 'messages[0].role', 'value'],
  [{ model: 'tiny', messages: [{ role: 'user' }] }, 'messages[0].content', 'missing'],
  [{ model: 'tiny', messages: [{ role: 'user', content: null }] }, 'messages[0].content', 'type'],
  [{ model: 'tiny', messages: [{ role: 'user', content: [] }] }, 'messages[0].content', 'empty'],
  [
    { model: 'tiny', messages: [...messages, { role: 'user', content: [{ type: 'text' }] }] },
    'messages[1].content[0].text',
    'missing',
  ],
  [{ ...minimal, messages: Array(10_001).fill(messages[0]) }, 'messages', 'array_too_long'],
  [{ ...minimal, temperature: '1' }, 'temperature', 'type'],
  [{ ...minimal, temperature: 2.1 }, 'temperature', 'decimal_too_big'],
  [{ ...minimal, temperature: -1 }, 'temperature', 'decimal_too_small'],
  [{ ...minimal, top_p: 1.1 }, 'top_p', 'decimal_too_big'],
  [{ ...minimal, frequency_penalty: -2.1 }, 'frequency_penalty', 'decimal_too_small'],
  [{ ...minimal, presence_penalty: 3 }, 'presence_penalty', 'decimal_too_big'],
  [{ ...minimal, max_tokens: 0 }, 'max_tokens', 'integer_too_small'],
  [{ ...minimal, max_tokens: -2 }, 'max_tokens', 'integer_too_small'],
  [{ ...minimal, max_tokens: '5' }, 'max_tokens', 'type'],
  [{ ...minimal, max_tokens: 1.5 }, 'max_tokens', 'type'],
  [{ ...minimal, max_completion_tokens: -1 }, 'max_completion_tokens', 'integer_too_small'],
  [{ ...minimal, top_k: -1 }, 'top_k', 'integer_too_small'],
  [{ ...minimal, seed: 1.5 }, 'seed', 'type'],
  [{ ...minimal, stop: 5 }, 'stop', 'type'],
  [{ ...minimal, stop: ['a', 5] }, 'stop[1]', 'type'],
  [{ ...minimal, stream: 'true' }, 'stream', 'type'],
  [{ ...minimal, stream_options: { include_usage: 1 } }, 'stream_options.include_usage', 'type'],
  [{ ...minimal, logit_bias: { hello: '1' } }, 'logit_bias.hello', 'type'],
  [
    {
      ...minimal,
      logit_bias: [
        ['a', 1],
        [-1, 1],
      ],
    },
    'logit_bias[1]',
    'value',
  ],
  [{ ...minimal, logit_bias: [5] }, 'logit_bias[0]', 'value'],
  [{ ...minimal, logit_bias: { a: true } }, 'logit_bias.a', 'type'],
  [{ ...minimal, logit_bias: [['a'.repeat(257), 1]] }, 'logit_bias[0]', 'value'],
  [{ ...minimal, logit_bias: Array(257).fill(['a', 1]) }, 'logit_bias[256]', 'value'],
  [{ ...minimal, logit_bias: { '5': 101 } }, 'logit_bias.5', 'decimal_too_big'],
  [{ ...minimal, top_logprobs: 1 }, 'top_logprobs', 'value'],
  [{ ...minimal, logprobs: false, top_logprobs: 1 }, 'top_logprobs', 'value'],
  [{ ...minimal, logprobs: true, top_logprobs: 21 }, 'top_logprobs', 'integer_too_big'],
  [{ ...minimal, response_format: {} }, 'response_format.type', 'missing'],
  [{ ...minimal, response_format: { type: 'json_schema' } }, 'response_format.json_schema', 'missing'],
  [{ ...minimal, response_format: { type: 'json_object', schema: 123 } }, 'response_format.schema', 'type'],
  [{ ...minimal, json_schema: 123 }, 'json_schema', 'type'],
  [
    { ...minimal, response_format: { type: 'json_schema', json_schema: { schema: 123 } } },
    'response_format.json_schema.schema',
    'type',
  ],
  [{ ...minimal, n: 0 }, 'n', 'integer_too_small'],
  [{ ...minimal, n: 9 }, 'n', 'integer_too_big'],
  [{ ...minimal, reasoning_effort: 'some' }, 'reasoning_effort', 'value'],
])('%j is rejected, and the error names the field %s and the issue %s', (body, param, issue) => {
  expect(() => read(body)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param, issue } }),
  )
})

test.each([
  [{ tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools[0].type'],
  [{ tool_choice: { type: 'custom', custom: { name: 'f' } } }, 'tool_choice.type'],
  [{ functions: [{ name: 'f' }] }, 'functions'],
  [{ function_call: { name: 'f' } }, 'function_call'],
  [{ modalities: ['text', 'audio'] }, 'modalities'],
  [{ messages: [{ role: 'function', content: 'x', name: 'f' }] }, 'messages[0].role'],
  [{ messages: [{ role: 'assistant', function_call: { name: 'f' } }] }, 'messages[0].function_call'],
  [{ messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'messages[0].content[0]'],
  [{ messages: [{ role: 'system', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0]'],
])('%j is rejected as not supported yet', (field, param) => {
  expect(() => read({ ...minimal, ...field })).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/supported yet\.$/),
      details: { param, issue: 'unsupported' },
    }),
  )
})

test.each([
  [{ n: 1 }],
  [{ n: null }],
  [{ functions: [] }],
  [{ function_call: 'auto' }],
  [{ modalities: ['text'] }],
])('%j needs no unsupported feature and is accepted', (field) => {
  expect(read({ ...minimal, ...field })).toMatchObject(minimal)
})
