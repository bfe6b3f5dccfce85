import { expect, test } from 'vitest'
import type { Issue } from '../../errors.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { CountTokensRequest, MessagesRequest } from './schema.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const minimal = { model: 'tiny', max_tokens: 5, messages }
const read = (body: unknown): MessagesRequest => parse(MessagesRequest, body, formatIssue)
const saying = (content: unknown): object => ({ ...minimal, messages: [{ role: 'user', content }] })

test('a model, a limit and a message are enough', () => {
  expect(read(minimal)).toEqual(minimal)
})

test('every optional field is parsed', () => {
  const body = {
    ...minimal,
    system: [{ type: 'text', text: 'Be brief.' }],
    stream: true,
    metadata: { user_id: 'u1' },
    stop_sequences: ['\n\nHuman:'],
    temperature: 1,
    top_p: 0,
    top_k: 0,
  }

  expect(read(body)).toEqual(body)
})

test.each([
  'system',
  'stream',
  'metadata',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'output_format',
  'mcp_servers',
  'container',
  'thread',
  'cache_control',
])('%s may be null, which means absent', (field) => {
  expect(read({ ...minimal, [field]: null })).toEqual({ ...minimal, [field]: undefined })
})

test('unknown fields, and fields that do not change the response, are ignored', () => {
  const more = {
    service_tier: 'auto',
    speed: 'standard',
    inference_geo: 'eu',
    context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
    betas: ['made-up-2099-01-01'],
    foo: 1,
  }

  expect(read({ ...minimal, ...more })).toEqual(minimal)
})

test.each([
  [{ role: 'user', content: '' }],
  [{ role: 'user', content: [] }],
  [{ role: 'system', content: 'Be brief.' }],
  [{ role: 'assistant', content: [{ type: 'text', text: 'Hello' }] }],
])('%j is a valid message', (message) => {
  expect(read({ ...minimal, messages: [message] }).messages).toEqual([message])
})

test('further fields that clients send in text blocks are accepted', () => {
  const block = { type: 'text', text: 'Hi', citations: null, foo: 1 }

  expect(read(saying([block])).messages[0]?.content).toEqual([{ type: 'text', text: 'Hi' }])
})

test.each<[body: object, message: string, param: string, issue: Issue]>([
  [{ max_tokens: 5, messages }, 'model: Field required', 'model', 'missing'],
  [{ model: 'tiny', messages }, 'max_tokens: Field required', 'max_tokens', 'missing'],
  [{ model: 'tiny', max_tokens: 5 }, 'messages: Field required', 'messages', 'missing'],
  [{ ...minimal, model: '' }, 'model: String should have at least 1 character', 'model', 'value'],
  [
    { ...minimal, model: 'm'.repeat(1_025) },
    'model: String should have at most 1024 characters',
    'model',
    'string_too_long',
  ],
  [{ ...minimal, max_tokens: '5' }, 'max_tokens: Input should be a valid integer', 'max_tokens', 'type'],
  [{ ...minimal, max_tokens: 1.5 }, 'max_tokens: Input should be a valid integer', 'max_tokens', 'type'],
  [
    { ...minimal, max_tokens: -1 },
    'max_tokens: Input should be greater than or equal to 0',
    'max_tokens',
    'integer_too_small',
  ],
  [{ ...minimal, messages: [] }, 'messages: at least one message is required', 'messages', 'empty'],
  [{ ...minimal, messages: 'Hi' }, 'messages: Input should be a valid list', 'messages', 'type'],
  [{ ...minimal, messages: ['Hi'] }, 'messages.0: Input should be a valid dictionary', 'messages[0]', 'type'],
  [
    { ...minimal, messages: Array(10_001).fill(messages[0]) },
    'messages: List should have at most 10000 items',
    'messages',
    'array_too_long',
  ],
  [
    { ...minimal, messages: [{ content: 'Hi' }] },
    'messages.0.role: Field required',
    'messages[0].role',
    'missing',
  ],
  [
    { ...minimal, messages: [...messages, { role: 'robot', content: 'Hi' }] },
    "messages.1.role: Input should be 'user', 'assistant' or 'system'",
    'messages[1].role',
    'value',
  ],
  [
    { ...minimal, messages: [{ role: 'user' }] },
    'messages.0.content: Field required',
    'messages[0].content',
    'missing',
  ],
  [
    saying(5),
    'messages.0.content: Input should be a valid string or a list of content blocks',
    'messages[0].content',
    'type',
  ],
  [
    saying(['Hi']),
    'messages.0.content.0: Input should be a valid dictionary',
    'messages[0].content[0]',
    'type',
  ],
  [
    saying([{ text: 'Hi' }]),
    'messages.0.content.0.type: Field required',
    'messages[0].content[0].type',
    'missing',
  ],
  [
    saying([{ type: 'text' }]),
    'messages.0.content.0.text: Field required',
    'messages[0].content[0].text',
    'missing',
  ],
  [
    saying([{ type: 'text', text: 'a' }, { type: 'smell' }]),
    "messages.0.content.1: Input tag 'smell' found using 'type' does not match any of the expected tags: 'text', 'image', 'tool_result', 'document', 'search_result'",
    'messages[0].content[1]',
    'value',
  ],
  [
    { ...minimal, system: [{ type: 'text', text: 5 }] },
    'system.0.text: Input should be a valid string',
    'system[0].text',
    'type',
  ],
  [
    { ...minimal, temperature: 1.01 },
    'temperature: Input should be less than or equal to 1',
    'temperature',
    'decimal_too_big',
  ],
  [
    { ...minimal, temperature: -0.1 },
    'temperature: Input should be greater than or equal to 0',
    'temperature',
    'decimal_too_small',
  ],
  [{ ...minimal, temperature: '1' }, 'temperature: Input should be a valid number', 'temperature', 'type'],
  [{ ...minimal, top_p: 2 }, 'top_p: Input should be less than or equal to 1', 'top_p', 'decimal_too_big'],
  [
    { ...minimal, top_k: -1 },
    'top_k: Input should be greater than or equal to 0',
    'top_k',
    'integer_too_small',
  ],
  [{ ...minimal, stream: 'true' }, 'stream: Input should be a valid boolean', 'stream', 'type'],
  [
    { ...minimal, stop_sequences: 'a' },
    'stop_sequences: Input should be a valid list',
    'stop_sequences',
    'type',
  ],
  [
    { ...minimal, stop_sequences: ['a', ' \n'] },
    'stop_sequences: each stop sequence must contain non-whitespace',
    'stop_sequences',
    'value',
  ],
  [
    { ...minimal, stop_sequences: ['a', 5] },
    'stop_sequences.1: Input should be a valid string',
    'stop_sequences[1]',
    'type',
  ],
  [
    { ...minimal, tool_choice: { type: 'maybe' } },
    "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'",
    'tool_choice.type',
    'value',
  ],
])('%j is rejected with %j', (body, message, param, issue) => {
  expect(() => read(body)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message, details: { param, issue } }),
  )
})

test.each([
  [{ mcp_servers: [{ type: 'url', name: 'a', url: 'https://a.example' }] }, 'mcp_servers'],
  [{ container: 'container_1' }, 'container'],
  [{ thread: { type: 'create' } }, 'thread'],
  [{ system: [{ type: 'image' }] }, 'system[0]'],
  [saying([{ type: 'text', text: 'a' }, { type: 'container_upload' }]), 'messages[0].content[1]'],
])('%j is rejected as not supported yet', (fields, param) => {
  expect(() => read({ ...minimal, ...fields })).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/ not supported yet\.$/),
      details: { param, issue: 'unsupported' },
    }),
  )
})

test.each([
  [{ tools: [] }],
  [{ tool_choice: { type: 'none' } }],
  [{ thinking: { type: 'disabled' } }],
  [{ thinking: { type: 'adaptive', display: 'omitted' } }],
  [{ output_config: { effort: 'high' } }],
  [{ output_config: { format: null } }],
  [{ mcp_servers: [] }],
])('%j needs no unsupported feature and is accepted', (fields) => {
  expect(read({ ...minimal, ...fields })).toMatchObject(minimal)
})

test.each([
  [
    { thinking: { type: 'enabled', budget_tokens: 0 } },
    'thinking.enabled.budget_tokens: Input should be greater than or equal to 1',
  ],
  [{ thinking: { type: 'enabled' } }, 'thinking.enabled.budget_tokens: Field required'],
  [{ thinking: { type: 'always' } }, "thinking.type: Input should be 'enabled', 'adaptive' or 'disabled'"],
  [{ thinking: {} }, 'thinking.type: Field required'],
  [{ thinking: 'enabled' }, 'thinking: Input should be a valid dictionary'],
  [
    { max_tokens: 1_024, thinking: { type: 'enabled', budget_tokens: 1_024 } },
    'max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`',
  ],
  [{ output_format: { type: 'xml' } }, "output_format.type: Input should be 'json_schema'"],
  [{ output_config: { format: { type: 'json_schema' } } }, 'output_config.format.schema: Field required'],
  [
    { output_config: { format: { type: 'json_schema', schema: 'x' } } },
    'output_config.format.schema: Input should be a valid dictionary',
  ],
  [{ output_config: 'high' }, 'output_config: Input should be a valid dictionary'],
])('%j is rejected with %j', (fields, message) => {
  expect(() => read({ ...minimal, ...fields })).toThrow(expect.objectContaining({ message }))
})

const tools = [{ name: 'now', input_schema: { type: 'object' } }]
test.each([
  [{ stream: true }, '`stream`'],
  [{ tools, tool_choice: { type: 'any' } }, 'a forced tool'],
  [{ tools, tool_choice: { type: 'tool', name: 'now' } }, 'a forced tool'],
  [{ output_config: { format: { type: 'json_schema', schema: {} } } }, 'an output format'],
  [{ output_format: { type: 'json_schema', schema: {} } }, 'an output format'],
])('`max_tokens` of 0 is rejected with %j', (fields, what) => {
  const message = `max_tokens: 0 only caches the prompt, so it cannot be combined with ${what}.`

  expect(() => read({ ...minimal, ...fields, max_tokens: 0 })).toThrow(expect.objectContaining({ message }))
  expect(read({ ...minimal, ...fields, max_tokens: 1 })).toBeDefined()
})

test.each([
  {},
  { stream: false },
  { tools, tool_choice: { type: 'auto' } },
  { thinking: { type: 'adaptive' } },
])('`max_tokens` of 0 is accepted with %j', (fields) => {
  expect(read({ ...minimal, ...fields, max_tokens: 0 }).max_tokens).toBe(0)
})

test('`max_tokens` of 0 rules out a thinking budget', () => {
  const thinking = { type: 'enabled', budget_tokens: 1 }

  expect(() => read({ ...minimal, max_tokens: 0, thinking })).toThrow(
    'max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`',
  )
})

const begun = { messages: [...messages, { role: 'assistant', content: 'The answer is' }] }
test.each([
  [{ tools, tool_choice: { type: 'any' } }, 'a forced tool'],
  [{ max_tokens: 9, thinking: { type: 'enabled', budget_tokens: 1 } }, 'thinking'],
  [{ output_format: { type: 'json_schema', schema: {} } }, 'an output format'],
])('a prefill is rejected with %j', (fields, what) => {
  expect(() => read({ ...minimal, ...begun, ...fields })).toThrow(
    expect.objectContaining({ message: expect.stringContaining(`not supported with ${what}.`) }),
  )
  expect(
    read({ ...minimal, ...fields, messages: [...messages, { role: 'assistant', content: '' }] }),
  ).toBeDefined()
})

test('token counting needs no `max_tokens`, and ignores sampling fields', () => {
  const body = parse(CountTokensRequest, { model: 'tiny', messages, temperature: 9 }, formatIssue)

  expect(body).toEqual({ model: 'tiny', messages })
})
