import { expect, test } from 'vitest'
import type { ChatInput, TextInput, Tool } from './request.ts'
import {
  boundImageTokens,
  callableTools,
  estimatePromptTokens,
  imagesOf,
  measureTextBytes,
  measureTextLength,
  toTemplateMessages,
} from './request-input.ts'
import { areTokens } from './request-limits.ts'

const chat: ChatInput = {
  kind: 'chat',
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'Hello' },
      ],
    },
    { role: 'user', content: [] },
  ],
}
const user = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] })

test('the template messages of a chat are its messages', () => {
  expect(toTemplateMessages(chat)).toBe(chat.messages)
})

test.each<[TextInput, object[]]>([
  [{ kind: 'text', prompt: ['Hi'] }, [user('Hi')]],
  [{ kind: 'text', prompt: ['Hi ', [1, 2], 'there'] }, [user('Hi there')]],
  [{ kind: 'text', prompt: [[1, 2]] }, [user('')]],
  [{ kind: 'text', prompt: [] }, [user('')]],
  [
    { kind: 'text', prompt: ['Hi'], system: 'Be brief.' },
    [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }, user('Hi')],
  ],
  [{ kind: 'text', prompt: ['Hi'], system: '' }, [user('Hi')]],
])('%j becomes a user message', (input, messages) => {
  expect(toTemplateMessages(input)).toEqual(messages)
})

test.each<[ChatInput | TextInput, number]>([
  [chat, 16],
  [{ kind: 'text', prompt: [] }, 0],
  [{ kind: 'text', prompt: ['Hi', [1, 2, 3], ' there'], system: 'Be brief.' }, 20],
])('the input %j measures %i characters, a token id counting as one', (input, length) => {
  expect(measureTextLength({ input })).toBe(length)
})

test.each<[unknown, boolean]>([
  [[], true],
  [[0, 2_147_483_647], true],
  [[-1], false],
  [[0.5], false],
  [[2 ** 31], false],
  [['5'], false],
  [[Number.NaN], false],
  ['5', false],
  [{ length: 0 }, false],
])('areTokens(%j) is %j', (value, are) => {
  expect(areTokens(value)).toBe(are)
})

const time: Tool = { name: 'get_time', parameters: {} }
const date: Tool = { name: 'get_date', parameters: {} }
const tools = [time, date]

test.each<[ChatInput['toolChoice'], readonly Tool[]]>([
  [undefined, tools],
  [{ mode: 'auto' }, tools],
  [{ mode: 'auto', names: ['get_date', 'other'] }, [date]],
  [{ mode: 'required', names: [] }, []],
  [{ mode: 'none' }, []],
])('the tool choice %j allows %j', (toolChoice, expected) => {
  expect(callableTools({ ...chat, tools, ...(toolChoice && { toolChoice }) })).toEqual(expected)
})

test('a text prompt has no callable tools', () => {
  expect(callableTools({ kind: 'text', prompt: ['Hi'] })).toEqual([])
})

test('an image counts a fixed number of tokens, however many bytes it has', () => {
  const image = { type: 'image', mediaType: 'image/png', data: 'A'.repeat(100_000) } as const
  const messages = [
    { role: 'user', content: [{ type: 'text', text: 'What?' }, image] },
    { role: 'tool', content: [{ type: 'tool-result', content: [image] }] },
  ] as const
  const input = { kind: 'chat', messages } as const
  const text = { kind: 'text', prompt: ['What?'], images: [image] } as const

  expect(imagesOf(input)).toEqual([image, image])
  expect(measureTextBytes({ input })).toBe(5)
  expect(estimatePromptTokens({ input })).toBe(2 + 2 * 4 + 2 * 1_600)
  expect(boundImageTokens(input)).toBe(2 * 48_169)
  expect(estimatePromptTokens({ input: text })).toBe(2 + 4 + 1_600)
  expect(toTemplateMessages(text)).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'What?' }, image] },
  ])
})

test('calls, results and tools count towards the length', () => {
  const messages = [
    { role: 'assistant', content: [{ type: 'tool-call', id: 'a', name: 'abc', arguments: '{}' }] },
    { role: 'tool', content: [{ type: 'tool-result', content: [{ type: 'text', text: 'four' }] }] },
  ] as const

  expect(measureTextLength({ input: { kind: 'chat', messages } })).toBe(9)
  expect(measureTextLength({ input: { kind: 'chat', messages, tools } })).toBe(
    9 + JSON.stringify(tools).length,
  )
})
