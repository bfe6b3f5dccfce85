import { expect, test } from 'vitest'
import { adaptMessages } from './special-messages.ts'
import type { TemplateMessage } from './template-message.ts'

const call = (name: string) => ({ id: 'a', type: 'function' as const, function: { name, arguments: {} } })
const calling: TemplateMessage = { role: 'assistant', content: '', tool_calls: [call('get_time')] }
const question: TemplateMessage = { role: 'user', content: ' When? ' }

test('messages stay as they are for other templates', () => {
  const messages = [question, calling]

  expect(adaptMessages(messages, '{{ messages }}')).toBe(messages)
})

const olderGemma = "{{ '<|tool_call>call:' }}"

test('the older template of Gemma 4 receives results and answer in the message with the calls', () => {
  const messages: TemplateMessage[] = [
    question,
    { ...calling, tool_calls: [call('get_time'), call('get_weather')] },
    { role: 'tool', content: '{"hour": 12}', name: 'get_time' },
    { role: 'tool', content: 'Rain.', tool_call_id: 'b' },
    { role: 'assistant', content: 'Noon.' },
    question,
  ]

  expect(adaptMessages(messages, olderGemma)).toEqual([
    question,
    {
      ...messages[1],
      content: 'Noon.',
      tool_responses: [
        { name: 'get_time', response: { hour: 12 } },
        { name: 'b', response: 'Rain.' },
      ],
    },
    question,
  ])
})

test.each([
  ['text before the calls stays', [{ ...calling, content: 'See.' }], ['See.']],
  [
    'text before the calls precedes the answer',
    [
      { ...calling, content: 'See.' },
      { role: 'tool', content: '1' },
      { role: 'assistant', content: 'One.' },
    ],
    ['See.\n\nOne.'],
  ],
  ['a call after a result is another message', [calling, { role: 'tool', content: '1' }, calling], ['', '']],
  [
    'an answer without a result is another message',
    [calling, { role: 'assistant', content: 'One.' }],
    ['', 'One.'],
  ],
])('for the older template of Gemma 4, %s', (_, messages, contents) => {
  expect(adaptMessages(messages, olderGemma).map(({ content }) => content)).toEqual(contents)
})

test('the template of Ministral 3 receives reasoning as a typed part', () => {
  const source = "{% if block['type'] == 'thinking' %}"
  const answer = { role: 'assistant', content: 'Noon.', reasoning_content: 'Hm.', thinking: 'Hm.' }

  expect(adaptMessages([question, answer, { ...answer, content: '' }, calling], source)).toEqual([
    question,
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'Noon.' },
      ],
      thinking: 'Hm.',
    },
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.' }], thinking: 'Hm.' },
    calling,
  ])
})

test('the template of StepFun 3.5 receives trimmed texts', () => {
  const source = 'You have access to the following functions in JSONSchema format'

  expect(adaptMessages([question, { ...calling, reasoning_content: ' Hm.\n' }], source)).toEqual([
    { role: 'user', content: 'When?' },
    { ...calling, reasoning_content: 'Hm.' },
  ])
})
