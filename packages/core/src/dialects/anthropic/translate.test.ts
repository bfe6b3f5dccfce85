import { expect, test } from 'vitest'
import { type GenerateRequest, messagesOf } from '../../engine/request.ts'
import { parse } from '../parse.ts'
import { wording } from './errors.ts'
import { MessagesRequest } from './schema.ts'
import { toGenerateRequest, toPrompt } from './translate.ts'

const user = (content: unknown): object => ({ role: 'user', content })
const assistant = (content: unknown): object => ({ role: 'assistant', content })

/** Through the schema: that is how bodies come. */
const translate = (fields: object): GenerateRequest =>
  toGenerateRequest(
    parse(MessagesRequest, { model: 'tiny', max_tokens: 5, messages: [user('Hi')], ...fields }, wording),
  )
/** The turns as `role: text`. */
const turns = (fields: object): string[] =>
  messagesOf(translate(fields).input).map(
    ({ role, content }) => `${role}: ${content.map((part) => ('text' in part ? part.text : '')).join('|')}`,
  )

test("a minimal request is sampled as Anthropic's API does it", () => {
  expect(translate({})).toEqual({
    model: 'tiny',
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    maxTokens: 5,
    sampling: { temperature: 1, topP: 1 },
  })
})

test('what is counted is what is read', () => {
  const fields = { system: 'Be brief.', messages: [user('a'), user('b'), assistant('c')] }
  const { model, input } = translate(fields)

  const prompt = toPrompt({ model: 'tiny', ...fields } as unknown as Parameters<typeof toPrompt>[0])

  expect(prompt).toEqual({ model, input })
})

test.each([
  [{ system: 'Be brief.' }, ['system: Be brief.', 'user: Hi']],
  [
    {
      system: [
        { type: 'text', text: 'Be ' },
        { type: 'text', text: 'brief.' },
      ],
    },
    ['system: Be brief.', 'user: Hi'],
  ],
  [{ system: '' }, ['user: Hi']],
  [{ system: [] }, ['user: Hi']],
])('%j is the system of %j', (fields, expected) => {
  expect(turns(fields)).toEqual(expected)
})

test("Claude Code's mark for its billing is no part of the prompt", () => {
  const billing = { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=1a2b;' }

  expect(turns({ system: [billing, { type: 'text', text: 'Be brief.' }] })).toEqual([
    'system: Be brief.',
    'user: Hi',
  ])
  expect(turns({ system: [billing] })).toEqual(['user: Hi'])
})

test.each([
  [
    [user('a'), user('b'), assistant('c'), assistant('d')],
    ['user: a\n\nb', 'assistant: c\n\nd'],
  ],
  [
    [
      user([
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ]),
    ],
    ['user: ab'],
  ],
  [[user('a'), assistant('')], ['user: a']],
  [[user('a'), assistant([]), user('b')], ['user: a\n\nb']],
  [[user(''), user('b')], ['user: b']],
  [[user('')], ['user: ']],
  [
    [user('a'), { role: 'system', content: 'Be brief.' }, assistant('c'), user('d')],
    ['user: a', 'system: Be brief.', 'assistant: c', 'user: d'],
  ],
])('%j are the turns %j', (messages, expected) => {
  expect(turns({ messages })).toEqual(expected)
})

test('the system and a first message of that role are one turn', () => {
  const messages = [{ role: 'system', content: 'Be kind.' }, user('Hi')]

  expect(turns({ system: 'Be brief.', messages })).toEqual(['system: Be brief.\n\nBe kind.', 'user: Hi'])
})

test('sampling options get their neutral names', () => {
  const { sampling, stop } = translate({ temperature: 0, top_p: 0.5, top_k: 7, stop_sequences: ['a', 'b'] })

  expect(sampling).toEqual({ temperature: 0, topP: 0.5, topK: 7 })
  expect(stop).toEqual(['a', 'b'])
})

test.each([[{ top_k: 0 }], [{ top_k: null }], [{ stop_sequences: [] }], [{ temperature: null }]])(
  '%j is the default',
  (fields) => {
    expect(translate(fields)).toEqual(translate({}))
  },
)
