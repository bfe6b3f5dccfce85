import type { LanguageModelV3Message, LanguageModelV3Prompt } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { toMessages } from './messages.ts'

type ToolMessage = Extract<LanguageModelV3Message, { role: 'tool' }>
type ToolResult = Extract<ToolMessage['content'][number], { type: 'tool-result' }>

const resultOf = (output: ToolResult['output']): LanguageModelV3Prompt => [
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call_a', toolName: 'find', output }] },
]

test('texts, reasoning and tool calls become parts', () => {
  const prompt: LanguageModelV3Prompt = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', toolCallId: 'call_a', toolName: 'find', input: { what: 'cat' } },
        { type: 'tool-call', toolCallId: 'call_b', toolName: 'find', input: undefined },
      ],
    },
  ]

  expect(toMessages(prompt)).toEqual([
    { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
    { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', id: 'call_a', name: 'find', arguments: '{"what":"cat"}' },
        { type: 'tool-call', id: 'call_b', name: 'find', arguments: '{}' },
      ],
    },
  ])
})

test.each<[output: ToolResult['output'], text: string, isError: true | undefined]>([
  [{ type: 'text', value: 'A cat.' }, 'A cat.', undefined],
  [{ type: 'json', value: { found: 1 } }, '{"found":1}', undefined],
  [{ type: 'content', value: [{ type: 'text', text: 'A cat.' }] }, 'A cat.', undefined],
  [{ type: 'error-text', value: 'No cat.' }, 'No cat.', true],
  [{ type: 'error-json', value: { found: 0 } }, '{"found":0}', true],
  [{ type: 'execution-denied', reason: 'Not now.' }, 'Not now.', true],
  [{ type: 'execution-denied' }, 'The execution of the tool was denied.', true],
])('a tool result %j becomes text', (output, text, isError) => {
  expect(toMessages(resultOf(output))).toEqual([
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          id: 'call_a',
          name: 'find',
          content: [{ type: 'text', text }],
          ...(isError && { isError }),
        },
      ],
    },
  ])
})

test('the result of a tool that another provider has executed gets a separate turn', () => {
  const prompt: LanguageModelV3Prompt = [
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'call_a', toolName: 'find', input: {}, providerExecuted: true },
        {
          type: 'tool-result',
          toolCallId: 'call_a',
          toolName: 'find',
          output: { type: 'text', value: 'A cat.' },
        },
        { type: 'text', text: 'I found a cat.' },
      ],
    },
  ]

  const roles = toMessages(prompt).map(({ role, content }) => [role, content[0]?.type])

  expect(roles).toEqual([
    ['assistant', 'tool-call'],
    ['tool', 'tool-result'],
    ['assistant', 'text'],
  ])
})

test('the answer to a request for approval is left out, and so is its message', () => {
  const prompt: LanguageModelV3Prompt = [
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a', approved: true }] },
  ]

  expect(toMessages(prompt)).toEqual([])
})

describe('a cache breakpoint', () => {
  const cache = (lifetime: string) => ({ modelmount: { cache: lifetime } })

  test('of a message is set at its last part', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ] as const
    const prompt = [
      { role: 'user', content, providerOptions: cache('1h') },
    ] as unknown as LanguageModelV3Prompt

    expect(toMessages(prompt)).toEqual([
      { role: 'user', content: [content[0], { ...content[1], cache: '1h' }] },
    ])
  })

  test('of the last part takes precedence over that of its message', () => {
    const content = [{ type: 'text' as const, text: 'a', providerOptions: cache('1h') }]
    const prompt: LanguageModelV3Prompt = [{ role: 'user', content, providerOptions: cache('5m') }]

    expect(toMessages(prompt)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'a', cache: '1h' }] },
    ])
  })

  test('is the only option of a part', () => {
    const providerOptions = { modelmount: { ttl: '5m' } }
    const prompt: LanguageModelV3Prompt = [{ role: 'system', content: 'a', providerOptions }]

    expect(() => toMessages(prompt)).toThrow(
      'providerOptions.modelmount.ttl: unknown option. The options here are cache.',
    )
  })
})

test.each<[what: string, prompt: LanguageModelV3Prompt]>([
  [
    'Files in messages (image/png)',
    [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: 'AAAA' }] }],
  ],
  [
    "Tool results of the type 'image-data'",
    resultOf({ type: 'content', value: [{ type: 'image-data', data: 'AAAA', mediaType: 'image/png' }] }),
  ],
  [
    // Version 7 of the SDK has this part.
    "Parts of the type 'custom'",
    [{ role: 'assistant', content: [{ type: 'custom', kind: 'a.b' }] }] as unknown as LanguageModelV3Prompt,
  ],
])('%s are unsupported', (what, prompt) => {
  expect(() => toMessages(prompt)).toThrow(
    expect.objectContaining({
      name: 'AI_UnsupportedFunctionalityError',
      message: `${what} are not supported: models of Modelmount read text only.`,
    }),
  )
})
