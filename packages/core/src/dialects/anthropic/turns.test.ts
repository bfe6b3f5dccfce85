import { expect, test } from 'vitest'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { MessagesRequest } from './schema.ts'

const user = (...content: unknown[]): object => ({ role: 'user', content })
const assistant = (...content: unknown[]): object => ({ role: 'assistant', content })
const system = { role: 'system', content: 'Be brief.' }
const text = { type: 'text', text: 'Hi' }
const use = (id: string): object => ({ type: 'tool_use', id, name: 'now', input: {} })
const result = (tool_use_id: string): object => ({ type: 'tool_result', tool_use_id })

const read = (messages: readonly object[]): MessagesRequest =>
  parse(MessagesRequest, { model: 'tiny', max_tokens: 5, messages }, formatIssue)

test.each([
  [[user(text), assistant(use('a')), user(result('a'))]],
  [[user(text), assistant(text, use('a'), use('b')), user(result('b'), result('a'), text)]],
  [[user(text), assistant(use('a')), assistant(use('b')), user(result('a')), user(text, result('b'))]],
  [[user(text), assistant(use('a')), system, user(result('a')), assistant(text)]],
  // Some servers use the same ids again in each answer.
  [[user(text), assistant(use('a')), user(result('a')), assistant(use('a')), user(result('a'))]],
])('the calls and results in %j are in order', (messages) => {
  expect(read(messages).messages).toHaveLength(messages.length)
})

const missing = (ids: string): string =>
  `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
const orphan = (id: string): string =>
  `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`

test.each([
  [[user(text), assistant(use('a'))], `messages.1: ${missing('a')}`],
  [
    [user(text), assistant(use('a'), use('b'), use('c')), user(result('b'))],
    `messages.1: ${missing('a, c')}`,
  ],
  [
    [user(text), assistant(use('a')), user(text), assistant(text), user(result('a'))],
    `messages.1: ${missing('a')}`,
  ],
  [[user(text), assistant(use('a')), system, system], `messages.1: ${missing('a')}`],
  [[user(text, result('a'))], `messages.0.content.1: ${orphan('a')}`],
  [[user(text), assistant(use('a')), user(result('a'), result('b'))], `messages.2.content.1: ${orphan('b')}`],
  [
    [user(text), assistant(use('a')), user(result('a')), assistant(text), user(result('a'))],
    `messages.4.content.0: ${orphan('a')}`,
  ],
  [[user(text), assistant(use('a'), use('a')), user(result('a'))], 'messages: `tool_use` ids must be unique'],
  [
    [user(text), assistant(use('a')), user(result('a')), user(result('a'))],
    'messages.3.content.0: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
  ],
  [[user(use('a'))], 'messages.0.content.0: `tool_use` blocks can only be in `assistant` messages'],
  [
    [user(text), assistant(text, result('a'))],
    'messages.1.content.1: `tool_result` blocks can only be in `user` messages',
  ],
  [
    [user({ type: 'thinking', thinking: 'Hm.' })],
    'messages.0.content.0: `thinking` blocks can only be in `assistant` messages',
  ],
  [
    [user(text), assistant({ type: 'tool_use', name: 'now', input: {} })],
    'messages.1.content.0.id: Field required',
  ],
  [
    [user(text), assistant({ ...use('a'), name: '' })],
    'messages.1.content.0.name: String should have at least 1 character',
  ],
  [
    [user(text), assistant({ ...use('a'), input: [] })],
    'messages.1.content.0.input: Input should be a valid dictionary',
  ],
  [
    [user(text), assistant({ ...use('a'), input: 'x' })],
    'messages.1.content.0.input: Input should be a valid dictionary',
  ],
  [[user({ type: 'tool_result' })], 'messages.0.content.0.tool_use_id: Field required'],
  [
    [user({ ...result('a'), content: 5 })],
    'messages.0.content.0.content: Input should be a valid string or a list of content blocks',
  ],
  [
    [user({ ...result('a'), content: [{ type: 'smell' }] })],
    "messages.0.content.0.content.0: Input tag 'smell' found using 'type' does not match any of the expected tags: 'text', 'image', 'tool_reference', 'document', 'search_result'",
  ],
])('%j is rejected with %j', (messages, message) => {
  expect(() => read(messages)).toThrow(expect.objectContaining({ code: 'invalid_request', message }))
})
