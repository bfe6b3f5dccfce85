import { expect, test } from 'vitest'
import type { ChatInput, GenerateRequest } from '../../engine/request.ts'
import { toTemplateMessages } from '../../engine/request-input.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { MessagesRequest } from './schema.ts'
import { toGenerateRequest, toPrompt } from './translate.ts'

const user = (content: unknown): object => ({ role: 'user', content })
const assistant = (content: unknown): object => ({ role: 'assistant', content })

/** Validates a body with the schema and translates it. */
const translate = (fields: object): GenerateRequest =>
  toGenerateRequest(
    parse(MessagesRequest, { model: 'tiny', max_tokens: 5, messages: [user('Hi')], ...fields }, formatIssue),
  )
/** The turns as `role: text`. */
const turns = (fields: object): string[] =>
  toTemplateMessages(translate(fields).input).map(
    ({ role, content }) => `${role}: ${content.map((part) => ('text' in part ? part.text : '')).join('|')}`,
  )

test("a minimal request is sampled with the defaults of Anthropic's API", () => {
  expect(translate({})).toEqual({
    model: 'tiny',
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    reasoning: false,
    maxTokens: 5,
    sampling: {},
    defaultSampling: { temperature: 1, topP: 1 },
  })
})

test('token counting uses the same prompt as generation', () => {
  const fields = { system: 'Be brief.', messages: [user('a'), user('b'), assistant('c')] }
  const { model, input, reasoning } = translate(fields)

  const prompt = toPrompt({ model: 'tiny', ...fields } as unknown as Parameters<typeof toPrompt>[0])

  expect(prompt).toEqual({ model, input, reasoning })
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
])('%j becomes the turns %j', (fields, expected) => {
  expect(turns(fields)).toEqual(expected)
})

test("Claude Code's billing marker is not part of the prompt", () => {
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
])('the messages %j become the turns %j', (messages, expected) => {
  expect(turns({ messages })).toEqual(expected)
})

test('the field `system` and a first system message are one turn', () => {
  const messages = [{ role: 'system', content: 'Be kind.' }, user('Hi')]

  expect(turns({ system: 'Be brief.', messages })).toEqual(['system: Be brief.\n\nBe kind.', 'user: Hi'])
})

test('sampling options are mapped to engine options', () => {
  const { sampling, stop } = translate({ temperature: 0, top_p: 0.5, top_k: 7, stop_sequences: ['a', 'b'] })

  expect(sampling).toEqual({ temperature: 0, topP: 0.5, topK: 7 })
  expect(stop).toEqual(['a', 'b'])
})

test.each([[{ top_k: 0 }], [{ top_k: null }], [{ stop_sequences: [] }], [{ temperature: null }]])(
  '%j is the same as the default',
  (fields) => {
    expect(translate(fields)).toEqual(translate({}))
  },
)

const now = { name: 'now', input_schema: { type: 'object' } }
const chat = (fields: object): ChatInput => translate(fields).input as ChatInput

test('tools are mapped to engine tools, without fields that were not given', () => {
  const described = {
    ...now,
    name: 'later',
    description: 'Says when.',
    strict: true,
    cache_control: { type: 'ephemeral', ttl: '1h' },
  }

  expect(chat({ tools: [now, described] }).tools).toEqual([
    { name: 'now', parameters: { type: 'object' } },
    {
      name: 'later',
      description: 'Says when.',
      parameters: { type: 'object' },
      strict: true,
      cache: '1h',
    },
  ])
  expect(chat({ tools: [] })).not.toHaveProperty('tools')
})

test.each([
  [undefined, undefined],
  [{ type: 'auto' }, { mode: 'auto' }],
  [
    { type: 'auto', disable_parallel_tool_use: true },
    { mode: 'auto', parallel: false },
  ],
  [{ type: 'any', disable_parallel_tool_use: false }, { mode: 'required' }],
  [
    { type: 'tool', name: 'now', disable_parallel_tool_use: true },
    { mode: 'required', names: ['now'], parallel: false },
  ],
  [{ type: 'none' }, { mode: 'none' }],
])('the choice %j becomes %j', (tool_choice, toolChoice) => {
  expect(chat({ tools: [now], tool_choice }).toolChoice).toEqual(toolChoice)
})

const used = (id: string, input: unknown = {}): object => ({ type: 'tool_use', id, name: 'now', input })
const result = (tool_use_id: string, more: object = {}): object => ({
  type: 'tool_result',
  tool_use_id,
  ...more,
})
const text = (text: string): object => ({ type: 'text', text })
const toolCall = (id: string, json = '{}'): object => ({
  type: 'tool-call',
  id,
  name: 'now',
  arguments: json,
})

test('reasoning, calls and results of a conversation keep their order', () => {
  const messages = [
    user('Hi'),
    assistant([
      { type: 'thinking', thinking: 'Hm.', signature: 'of nobody' },
      { type: 'redacted_thinking', data: 'AAAA' },
      text('I look.'),
      used('a', { b: 1, a: 2 }),
      used('b', '{"c": 3}'),
    ]),
    user([
      result('b', { is_error: true, content: 'No.' }),
      result('a', { content: [text('12:'), text('30')] }),
      text('So?'),
    ]),
  ]

  expect(chat({ messages }).messages.slice(1)).toEqual([
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        text('I look.'),
        toolCall('a', '{"b":1,"a":2}'),
        toolCall('b', '{"c":3}'),
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', id: 'b', content: [text('No.')], isError: true },
        { type: 'tool-result', id: 'a', content: [text('12:'), text('30')] },
      ],
    },
    { role: 'user', content: [text('So?')] },
  ])
})

test.each([
  ['text before a result', [user([text('So?'), result('a')])], 'user assistant tool user'],
  [
    'a system between them',
    [{ role: 'system', content: 'Be brief.' }, user([result('a')])],
    'user assistant tool system',
  ],
  ['a result alone', [user([result('a', { content: null })])], 'user assistant tool'],
  [
    'results in two messages',
    [user('So?'), user([result('a', { content: '' })])],
    'user assistant tool user',
  ],
])('%s: results follow their calls directly, and no turn is added', (_what, rest, roles) => {
  const { messages } = chat({ messages: [user('Hi'), assistant([used('a')]), ...rest] })

  expect(messages.map(({ role }) => role).join(' ')).toBe(roles)
})

test('images get the path of their block, also in results that move to the front', () => {
  const png = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' }
  const messages = [
    user('Hi'),
    assistant([used('a')]),
    user([
      { type: 'image', source: png, cache_control: { type: 'ephemeral' } },
      result('a', {
        content: [
          { type: 'text', text: 'Seen:' },
          { type: 'image', source: png },
        ],
      }),
    ]),
    user([{ type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }]),
  ]

  expect(chat({ messages }).messages.slice(2)).toEqual([
    {
      role: 'tool',
      content: [
        {
          ...{ type: 'tool-result', id: 'a' },
          content: [text('Seen:'), { ...image, param: 'messages[2].content[1].content[1].image' }],
        },
      ],
    },
    {
      role: 'user',
      content: [
        { ...image, param: 'messages[2].content[0].image', cache: '5m' },
        {
          ...{ type: 'image', mediaType: '', data: '', url: 'https://a.example/b.png' },
          param: 'messages[3].content[0].image',
        },
      ],
    },
  ])
})

test.each([
  [[], []],
  ['', [text('')]],
])('the content %j of a result becomes %j', (content, parts) => {
  const messages = [user('Hi'), assistant([used('a')]), user([result('a', { content })])]

  expect(chat({ messages }).messages.at(-1)?.content).toEqual([
    { type: 'tool-result', id: 'a', content: parts },
  ])
})

test('hosted tools of other servers become text, without their encrypted fields', () => {
  const found = [{ type: 'web_search_result', title: 'Oslo', encrypted_content: 'AAAA' }]
  const messages = [
    user('Hi'),
    assistant([
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Oslo' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: found },
      { type: 'made_up_tomorrow' },
      text('Found.'),
    ]),
    user('Thanks'),
  ]

  expect(turns({ messages })[1]).toBe(
    'assistant: \nweb_search: {"query":"Oslo"}\n\nweb_search_tool_result: [{"type":"web_search_result","title":"Oslo"}]\nFound.',
  )
})

test.each([{ toString: null }, 5, null, undefined])('a hosted tool with the name %j is accepted', (name) => {
  const result = {
    type: 'tool_result',
    tool_use_id: 'a',
    content: [{ type: 'tool_reference', tool_name: name }],
  }
  const messages = [
    user('Hi'),
    assistant([{ type: 'server_tool_use', name, input: { a: 1 } }, used('a')]),
    user([result]),
  ]

  expect(turns({ messages })).toEqual(['user: Hi', 'assistant: \n: {"a":1}\n|', 'tool: '])
})

test('text documents and search results become their text', () => {
  const document = {
    type: 'document',
    title: 'Oslo',
    source: { type: 'text', media_type: 'text/plain', data: 'Rain.' },
  }
  const found = {
    type: 'search_result',
    source: 'https://a.b',
    title: 'Rome',
    content: [text('Sun'), text('shine.')],
  }
  const source = { type: 'content', content: [text('a'), text('b')] }
  const messages = [
    user([document, text('So?')]),
    assistant([used('a')]),
    user([
      {
        ...(result('a') as object),
        content: [found, { type: 'document', source, context: 'Of today.', citations: {} }],
      },
    ]),
  ]

  expect(turns({ messages })[0]).toBe('user: <document>\nOslo\n\nRain.\n</document>\n\nSo?')
  expect(chat({ messages }).messages[2]?.content).toMatchObject([
    {
      content: [
        text('<search_result>\nRome\n\nhttps://a.b\n\nSunshine.\n</search_result>\n\n'),
        text('<document>\nOf today.\n\nab\n</document>\n\n'),
      ],
    },
  ])
})

test('a message with only reasoning is not a turn', () => {
  expect(
    turns({ messages: [user('a'), assistant([{ type: 'thinking', thinking: 'Hm.' }]), user('b')] }),
  ).toEqual(['user: a\n\nb'])
})

test.each([
  [{}, false],
  [{ thinking: { type: 'disabled' } }, false],
  [{ thinking: { type: 'adaptive' } }, 'auto'],
  [{ thinking: { type: 'between_tools' } }, 'auto'],
  [{ thinking: { type: 'enabled', budget_tokens: 4 } }, true],
])('%j sets `reasoning` to %s', (fields, reasoning) => {
  expect(translate(fields).reasoning).toBe(reasoning)
})

test.each(['output_format', 'output_config'])('a schema in %s is the format of the answer', (field) => {
  const format = { type: 'json_schema', schema: { type: 'object' } }

  expect(translate({ [field]: field === 'output_format' ? format : { format } }).format).toEqual({
    type: 'json-schema',
    schema: { type: 'object' },
  })
})

test('a forced call drops the format', () => {
  const output_format = { type: 'json_schema', schema: {} }

  expect(translate({ output_format, tools: [now], tool_choice: { type: 'any' } })).not.toHaveProperty(
    'format',
  )
  expect(translate({ output_format, tools: [now] })).toHaveProperty('format')
})

test.each([
  [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }, { reasoning_effort: 'high' }],
  [{ thinking: { type: 'adaptive' }, output_config: { effort: 'from a newer client' } }, undefined],
  [{ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, undefined],
  [{ output_config: { effort: 'high' } }, undefined],
])('the effort of %j is that of the reasoning, while there is some', (fields, templateOptions) => {
  expect(chat(fields).templateOptions).toEqual(templateOptions)
})
