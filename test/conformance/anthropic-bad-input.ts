/** Invalid and hostile bodies for the Anthropic API. Each gets a 400, and none reaches the engine. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { ask, expectAnthropicError, greeting } from './calls.ts'
import type { Check } from './suite.ts'

const withFields = (fields: object): object => ({ ...greeting, ...fields })
const saying = (content: unknown): object => withFields({ messages: [{ role: 'user', content }] })
const raw = (fields: string): string => `${JSON.stringify(greeting).slice(0, -1)},${fields}}`

/** By name: the beginning of the error message, and the bodies, as objects or as text. */
const refused: Readonly<Record<string, readonly [start: string, ...bodies: (string | object)[]]>> = {
  'malformed JSON': ['', '{', `${JSON.stringify(greeting)}}`, "{'model': 'tiny'}", raw('"temperature":NaN')],
  'an empty body': ['', '', ' \n'],
  'nesting beyond 128 levels': ['', raw(`"foo":${'['.repeat(129)}${']'.repeat(129)}`)],
  'a body that is not an object': ['The request body', '"x"', '5', '[]', 'null'],
  'a model that is not a string': [
    'model: Input should be a valid string',
    ...[5, true, [], {}, null].map((model) => withFields({ model })),
  ],
  'a model name of one megabyte': ['model: String should', withFields({ model: 'm'.repeat(2 ** 20) })],
  'a `max_tokens` that is not an integer': [
    'max_tokens: Input should be a valid integer',
    ...['5', '', true, [], {}, null, 1.5].map((max_tokens) => withFields({ max_tokens })),
    raw('"max_tokens":1e999'),
  ],
  'a `max_tokens` below zero': ['max_tokens: Input should be greater', withFields({ max_tokens: -1 })],
  'a `max_tokens` beyond the safe integers of a double': [
    'max_tokens: Input should be less',
    raw('"max_tokens":1e300'),
  ],
  'messages that are not a list': [
    'messages: Input should be a valid list',
    ...['Hello', 5, true, {}, null].map((messages) => withFields({ messages })),
  ],
  'a message that is not an object': [
    'messages.1: Input should be a valid dictionary',
    ...['Hello', 5, [], null].map((one) => withFields({ messages: [...greeting.messages, one] })),
  ],
  'an unknown role': [
    'messages.0.role: Input should be',
    ...['robot', 'User', '', '__proto__', 5, null, {}].map((role) =>
      withFields({ messages: [{ role, content: 'Hello' }] }),
    ),
  ],
  'content of a wrong type': [
    'messages.0.content: Input should be a valid string or a list',
    ...[5, true, {}, null].map(saying),
  ],
  'a block that is not an object': [
    'messages.0.content.1: Input should be a valid dictionary',
    ...['Hello', 5, [], null].map((block) => saying([{ type: 'text', text: 'Hello' }, block])),
  ],
  'a block whose unknown type is one megabyte long': [
    `messages.0.content.0: Input tag '${'x'.repeat(64)}' found`,
    saying([{ type: 'x'.repeat(2 ** 20) }]),
  ],
  'a text block without its `text`': [
    'messages.0.content.0.text: Field required',
    saying([{ type: 'text' }]),
  ],
  'blocks of unsupported types': [
    'messages.0.content.0: A block of the type',
    saying([{ type: 'container_upload' }]),
  ],
  'images for a model that sees none': [
    'messages.0.content.0: An image is not supported by this model.',
    ...[
      {},
      { source: 5 },
      { source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
      { source: { type: 'url', url: 'https://example.com/cat.png' } },
      { source: { type: 'file', file_id: 'file_1' } },
    ].map((fields) => saying([{ type: 'image', ...fields }])),
  ],
  'invalid documents and search results': [
    'messages.0.content.0.',
    ...[
      { type: 'document' },
      { type: 'document', source: 'Rain.' },
      { type: 'document', source: { type: 'base64', data: 'AAAA' } },
      { type: 'document', source: { type: 'text', data: 5 } },
      { type: 'document', source: { type: 'content', content: [{ type: 'image' }] } },
      { type: 'document', source: { type: 'text', data: '' }, title: {} },
      { type: 'search_result', title: 'Rome', content: [] },
      { type: 'search_result', source: '', title: '', content: [{ type: 'document' }] },
    ].map((block) => saying([block])),
  ],
  'blocks in a message of the wrong role': [
    'messages.0.content.0: `t',
    ...['tool_use', 'thinking'].map((type) => saying([{ type }])),
    withFields({ messages: [{ role: 'assistant', content: [{ type: 'tool_result' }] }] }),
  ],
  'invalid tool calls and results': [
    'messages.0.content.0.',
    ...[
      {},
      { id: 5 },
      { id: '' },
      { id: 'i'.repeat(2 ** 20) },
      { id: 'a' },
      { id: 'a', name: '' },
      { id: 'a', name: 'n'.repeat(129) },
      { id: 'a', name: 'n' },
      ...[5, true, null, [], '[]', '{', ''].map((input) => ({ id: 'a', name: 'n', input })),
    ].map((fields) =>
      withFields({ messages: [{ role: 'assistant', content: [{ type: 'tool_use', ...fields }] }] }),
    ),
    ...[
      {},
      { tool_use_id: 5 },
      { tool_use_id: 'a', is_error: 'no' },
      { tool_use_id: 'a', content: 5 },
      { tool_use_id: 'a', content: [5] },
      { tool_use_id: 'a', content: [{ type: 'tool_use' }] },
      { tool_use_id: 'a', content: [{ type: 'document' }] },
    ].map((fields) => saying([{ type: 'tool_result', ...fields }])),
  ],
  'a tool result with an id of lone surrogates': [
    'messages.0.content.0: unexpected',
    saying([{ type: 'tool_result', tool_use_id: '\ud800'.repeat(200) }]),
  ],
  '1,000 tool calls without results': [
    'messages.0: `tool_use` ids were found without',
    withFields({
      messages: [
        {
          role: 'assistant',
          content: Array.from({ length: 1_000 }, (_, id) => ({
            type: 'tool_use',
            id: `${id}`,
            name: 'n',
            input: {},
          })),
        },
      ],
    }),
  ],
  'invalid tools': [
    'tools',
    ...[
      'now',
      5,
      {},
      ['now'],
      [null],
      [{}],
      [{ type: 5 }],
      [{ type: '__proto__' }],
      [{ type: 'x'.repeat(2 ** 20) }],
    ].map((tools) => withFields({ tools })),
    ...[
      { name: '' },
      { name: 'ü' },
      { name: 'n'.repeat(2 ** 20) },
      { name: 'n', description: {} },
      { name: 'n', strict: 'yes' },
      { name: 'n', input_schema: null },
      { name: 'n', input_schema: '{}' },
      { name: 'n', input_schema: { type: 'array' } },
      { name: 'n', input_schema: { type: ['object'] } },
    ].map((tool) => withFields({ tools: [{ input_schema: { type: 'object' }, ...tool }] })),
  ],
  '1,025 tools': [
    'tools: List should have at most',
    withFields({
      tools: Array.from({ length: 1_025 }, (_, n) => ({ name: `n${n}`, input_schema: { type: 'object' } })),
    }),
  ],
  'invalid tool choices': [
    'tool_choice',
    ...[
      'any',
      5,
      [],
      {},
      { type: 5 },
      { type: 'some' },
      { type: 'tool' },
      { type: 'tool', name: 'n'.repeat(2 ** 20) },
    ].map((tool_choice) =>
      withFields({ tools: [{ name: 'n', input_schema: { type: 'object' } }], tool_choice }),
    ),
  ],
  'invalid `thinking` settings': [
    'thinking',
    ...['enabled', 5, [], {}, { type: 'much' }, { type: 'enabled' }, { type: 'adaptive', display: 5 }].map(
      (thinking) => withFields({ thinking }),
    ),
    ...[0, -1, 1.5, '1024', null, 1e300].map((budget_tokens) =>
      withFields({ thinking: { type: 'enabled', budget_tokens } }),
    ),
  ],
  'invalid output formats': [
    'output_',
    ...[
      'json',
      5,
      [],
      {},
      { type: 'json_schema' },
      { type: 'json_schema', schema: [] },
      { type: 'x', schema: {} },
    ].flatMap((format) => [withFields({ output_format: format }), withFields({ output_config: { format } })]),
    withFields({ output_config: 5 }),
  ],
  'a `system` of a wrong type': [
    'system: Input should be',
    ...[5, true, {}].map((system) => withFields({ system })),
  ],
  '100,000 short messages': [
    'messages: List should have at most',
    withFields({ messages: Array(100_000).fill(greeting.messages[0]) }),
  ],
  '10,001 blocks in one message': [
    'messages.0.content: List should have at most',
    saying(Array(10_001).fill({ type: 'text', text: 'a' })),
  ],
  'numbers out of their range': [
    '',
    ...[{ temperature: 1e308 }, { temperature: '1' }, { top_p: -1 }, { top_k: -1 }, { top_k: 2 ** 31 }].map(
      withFields,
    ),
  ],
  'invalid stop sequences': [
    'stop_sequences',
    ...['a', [5], [' '], [''], ['\ud800'], ['a'.repeat(1_025)], Array(65).fill('a')].map((stop_sequences) =>
      withFields({ stop_sequences }),
    ),
  ],
  'a `cache_control` that is not an object': [
    'cache_control: Input should be a valid dictionary',
    ...['ephemeral', 5, true, []].map((cache_control) => withFields({ cache_control })),
  ],
  'an invalid `cache_control`': [
    'messages.0.content.0.cache_control.',
    ...[{}, { type: null }, { type: 'x'.repeat(2 ** 20) }, { type: 'ephemeral', ttl: [] }].map(
      (cache_control) => saying([{ type: 'text', text: 'Hello', cache_control }]),
    ),
  ],
  '10,000 breakpoints': [
    'A maximum of 4 blocks with cache_control may be provided. Found 10000.',
    saying(Array(10_000).fill({ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } })),
  ],
  'a stream that is not a boolean': [
    'stream: Input should be a valid boolean',
    ...['true', 1, [], {}].map((stream) => withFields({ stream })),
  ],
}

export const badInput: Record<string, Check> = Object.fromEntries(
  Object.entries(refused).map(([what, [start, ...bodies]]) => [
    `rejected with 400: ${what} (Anthropic API)`,
    async (serve) => {
      const engine = scriptedEngine('Hello there.')
      const url = await serve(engine)

      for (const body of bodies) {
        const response = await ask(url, body)

        const { error } = (await response.clone().json()) as { error: { message: string } }
        expect(error.message.slice(0, start.length)).toBe(start)
        expect(error.message.length).toBeLessThan(300)
        await expectAnthropicError(response, 400)
      }

      expect(engine.requests).toEqual([])
    },
  ]),
)
