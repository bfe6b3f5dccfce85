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

test('an image separates the texts of a message, and its detail is ignored', () => {
  const image = (image_url: unknown) => ({ type: 'image_url', image_url })
  const text = (text: string) => ({ type: 'text', text })
  const url = 'data:image/png;base64,AAAA'
  const content = [text('a'), text('b'), image({ url, detail: 'high' }), text('c'), image(5), image(null)]
  const [message] = read([{ role: 'user', content }])
  const part = (url: string, at: number) => ({
    ...{ type: 'image', mediaType: '', data: '', url, param: `messages[0].content[${at}]` },
  })

  expect(message?.content).toEqual([text('a\nb'), part(url, 2), text('c'), part('', 4), part('', 5)])
})

test.each(['system', 'developer', 'assistant'])('an image in a message of the %s is rejected', (role) => {
  const content = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]

  expect(() => read([{ role, content }])).toThrow(
    expect.objectContaining({ details: { param: '[0].content[0]', issue: 'unsupported' } }),
  )
})

test('arguments that are not JSON stay unchanged', () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":' } }

  const [turn] = read([{ role: 'assistant', tool_calls: [call] }, result('a')])

  expect(turn?.content).toEqual([{ type: 'tool-call', id: 'a', name: 'f', arguments: '{"a":' }])
})
