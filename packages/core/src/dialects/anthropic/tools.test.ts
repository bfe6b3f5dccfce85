import { expect, test } from 'vitest'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { MessagesRequest } from './schema.ts'

const minimal = { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }
const read = (fields: object): MessagesRequest =>
  parse(MessagesRequest, { ...minimal, ...fields }, formatIssue)
const now = { name: 'now', input_schema: { type: 'object' } }

test.each([{}, { type: 'custom' }, { type: null }])('a tool with %j is a custom tool', (more) => {
  const described = { ...now, description: 'Says the time.', strict: true, ...more }

  expect(read({ tools: [described] }).tools).toEqual([
    { name: 'now', description: 'Says the time.', input_schema: { type: 'object' }, strict: true },
  ])
})

test('unknown fields of a tool, and fields that do not change the response, are ignored', () => {
  const more = { defer_loading: true, input_examples: [{}], foo: 1 }

  expect(read({ tools: [{ ...now, ...more }] }).tools).toEqual([now])
})

test.each([
  ['bash_20250124', 'bash', 'command'],
  ['text_editor_20250124', 'str_replace_editor', 'path'],
  ['text_editor_20250429', 'str_replace_based_edit_tool', 'path'],
  ['text_editor_20250728', 'str_replace_based_edit_tool', 'insert_text'],
  ['memory_20250818', 'memory', 'command'],
])('the type %s defines the tool %s, with a field %s', (type, name, field) => {
  const [tool] = read({ tools: [{ type, name }] }).tools ?? []

  expect(tool).toMatchObject({
    name,
    description: expect.stringMatching(/./),
    input_schema: { type: 'object' },
  })
  expect(tool?.input_schema).toMatchObject({ properties: { [field]: { type: 'string' } } })
})

test('a tool search is skipped, since all tools are in the prompt', () => {
  const search = { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }

  expect(read({ tools: [search, now] }).tools).toEqual([now])
})

const tags =
  "'custom', 'bash_20250124', 'text_editor_20250124', 'text_editor_20250429', 'text_editor_20250728', 'memory_20250818'"
test.each([
  [[now, now], 'tools: Tool names must be unique.'],
  [['now'], 'tools.0: Input should be a valid dictionary'],
  [[{ input_schema: { type: 'object' } }], 'tools.0.custom.name: Field required'],
  [
    [now, { ...now, name: 'a b' }],
    "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  ],
  [
    [{ ...now, name: 'n'.repeat(129) }],
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  ],
  [[{ name: 'now' }], 'tools.0.custom.input_schema: Field required'],
  [[{ name: 'now', input_schema: [] }], 'tools.0.custom.input_schema: Input should be a valid dictionary'],
  [[{ name: 'now', input_schema: {} }], 'tools.0.custom.input_schema.type: Field required'],
  [
    [{ name: 'now', input_schema: { type: 'string' } }],
    "tools.0.custom.input_schema.type: Input should be 'object'",
  ],
  [[{ ...now, description: 5 }], 'tools.0.custom.description: Input should be a valid string'],
  [[{ type: 'bash_20250124', name: 'sh' }], "tools.0.custom.name: Input should be 'bash'"],
  [
    [{ type: 'web_search_20250305', name: 'web_search' }],
    "tools.0.type: A tool of the type 'web_search_20250305' is not supported.",
  ],
  [
    [{ type: 'computer_20250124', name: 'computer' }],
    "tools.0.type: A tool of the type 'computer_20250124' is not supported.",
  ],
  [
    [{ type: '__proto__', name: 'x' }],
    `tools.0: Input tag '__proto__' found using 'type' does not match any of the expected tags: ${tags}`,
  ],
])('the tools %j are rejected with %j', (tools, message) => {
  expect(() => read({ tools })).toThrow(expect.objectContaining({ code: 'invalid_request', message }))
})

test.each([
  [{ tool_choice: { type: 'any' } }, 'tool_choice: tool_choice may only be specified while providing tools'],
  [
    { tools: [], tool_choice: { type: 'auto' } },
    'tool_choice: tool_choice may only be specified while providing tools',
  ],
  [
    { tools: [now], tool_choice: { type: 'tool', name: 'later' } },
    "tool_choice.name: Tool 'later' not found in provided tools",
  ],
  [{ tools: [now], tool_choice: { type: 'tool' } }, 'tool_choice.name: Field required'],
  [{ tools: [now], tool_choice: 'auto' }, 'tool_choice: Input should be a valid dictionary'],
  [
    { tools: [now], tool_choice: { type: 'auto', disable_parallel_tool_use: 1 } },
    'tool_choice.disable_parallel_tool_use: Input should be a valid boolean',
  ],
])('%j is rejected with %j', (fields, message) => {
  expect(() => read(fields)).toThrow(expect.objectContaining({ code: 'invalid_request', message }))
})
