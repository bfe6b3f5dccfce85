import { expect, test } from 'vitest'
import type * as neutral from '../../engine/request.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { Messages, toMessages } from './messages.ts'

const read = (messages: unknown): readonly neutral.Message[] =>
  toMessages(parse(Messages, messages, formatIssue))

const user = { role: 'user', content: 'Hi' }
const calling = (...ids: string[]) => ({
  role: 'assistant',
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
})
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'noon' })

test.each([
  ['in another order', [user, calling('a', 'b'), result('b'), result('a'), user]],
  ['at the end', [user, calling('a'), result('a')]],
  ['twice', [user, calling('a'), result('a'), result('a')]],
  ['with ids that are used again in another turn', [calling('a'), result('a'), calling('a'), result('a')]],
])('results %s are accepted', (_, messages) => {
  expect(read(messages).map(({ role }) => role)).toEqual(messages.map(({ role }) => role))
})

test.each([
  ['a result before all else', [result('a'), user], 0],
  ['a result of an earlier turn', [calling('a'), result('a'), user, result('a')], 3],
  ['a result of another id', [calling('a'), result('b')], 1],
  ['a call at the end', [user, calling('a')], 1],
  ['a call with half of its results', [user, calling('a', 'b'), result('b'), user], 1],
  ['a call that is followed by another', [user, calling('a'), calling('b'), result('b')], 1],
])('%s is rejected', (_, messages, index) => {
  expect(() => read(messages)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param: `messages[${index}].role` } }),
  )
})

test('a turn has its reasoning, its text and its calls, in this order', () => {
  const turn = { ...calling('a'), content: 'I look.', reasoning_content: 'Hm.', reasoning: 'Hm.' }

  expect(read([turn, result('a')])[0]).toEqual({
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'I look.' },
      { type: 'tool-call', id: 'a', name: 'f', arguments: '{}' },
    ],
  })
})

test('parts of a message become one text, with a line break between them, and a refusal is text', () => {
  const content = [
    { type: 'text', text: 'Sorry.' },
    { type: 'refusal', refusal: 'I will not.' },
  ]

  const [turn, question] = read([
    { role: 'assistant', content },
    { role: 'user', content: [{ type: 'text', text: 'Why?' }] },
  ])

  expect(turn?.content).toEqual([{ type: 'text', text: 'Sorry.\nI will not.' }])
  expect(question?.content).toEqual([{ type: 'text', text: 'Why?' }])
})

test('arguments that are not JSON stay unchanged', () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":' } }

  const [turn] = read([{ role: 'assistant', tool_calls: [call] }, result('a')])

  expect(turn?.content).toEqual([{ type: 'tool-call', id: 'a', name: 'f', arguments: '{"a":' }])
})
