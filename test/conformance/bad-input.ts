/**
 * Requests of broken and hostile clients to the OpenAI API. Invalid requests get a 400 that names the field,
 * and none reaches the engine. Harmless requests have the effect that their title describes.
 */
import { Agent, type IncomingMessage, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { text } from 'node:stream/consumers'
import { LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import {
  chat,
  chunksOf,
  completionOf,
  contentOf,
  expectError,
  hello,
  joined,
  json,
  promptOf,
  said,
} from './calls.ts'
import type { Check } from './suite.ts'

type Expected = Readonly<Record<string, unknown>>
/** A request body. An object is sent as JSON, a string or bytes unchanged. */
type Body = string | Uint8Array<ArrayBuffer> | object
type Refused = Readonly<Record<string, readonly [expected: Expected, ...bodies: Body[]]>>

const invalid = (param: string, code: string): Expected => ({ param, code })
const type = (param: string): Expected => invalid(param, 'invalid_type')
const value = (param: string): Expected => invalid(param, 'invalid_value')
const unsupported = (param: string): Expected => invalid(param, 'unsupported_parameter')
const missing = (param: string) => invalid(param, 'missing_required_parameter')
const func = (fields: unknown): object => ({ type: 'function', function: fields })
const withFields = (fields: object): object => ({ ...hello, ...fields })
const message = (fields: object): object => ({ model: 'tiny', messages: [fields] })
const saying = (content: unknown): object => message({ role: 'user', content })
/** Adds fields as JSON text, for numbers that `JSON.stringify` cannot write. */
const raw = (fields: string): string => `${JSON.stringify(hello).slice(0, -1)},${fields}}`
const bytes = (...values: readonly (string | number)[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(
    Buffer.concat(values.map((one) => (typeof one === 'string' ? Buffer.from(one) : Buffer.of(one)))),
  )

const refused: Refused = {
  'malformed JSON': [
    {},
    '{',
    '{"model": tiny}',
    `${JSON.stringify(hello)}}`,
    "{'model': 'tiny'}",
    '{"a":1,}',
  ],
  'an empty body': [{}, '', ' \n'],
  'NaN and Infinity in JSON': [
    {},
    raw('"temperature":NaN'),
    raw('"temperature":Infinity'),
    raw('"seed":-Infinity'),
  ],
  'invalid UTF-8': [
    {},
    bytes('{"model":"', 0xff, '"}'),
    bytes('{"model":"', 0xc3, '"}'),
    bytes(0xff, 0xfe, '{', 0),
  ],
  'nesting beyond 128 levels': [
    { message: expect.stringContaining('nested deeper') },
    raw(`"foo":${'['.repeat(129)}${']'.repeat(129)}`),
    raw(`"messages":${'{"a":'.repeat(129)}1${'}'.repeat(129)}`),
  ],
  'a body that is a string, a number, a boolean, a list or null': [
    { code: 'invalid_type' },
    '"x"',
    '5',
    'true',
    '[]',
    '[{}]',
    'null',
  ],

  'a model that is not a string': [
    type('model'),
    ...[5, true, [], {}, null].map((model) => withFields({ model })),
  ],
  'an empty model name': [value('model'), withFields({ model: '' })],
  'a model name of one megabyte': [
    { ...invalid('model', 'string_above_max_length'), message: expect.stringMatching(/^.{1,200}$/) },
    withFields({ model: 'm'.repeat(2 ** 20) }),
  ],
  'messages that are not a list': [
    type('messages'),
    ...['Hello', 5, true, {}, null].map((messages) => withFields({ messages })),
  ],
  'an empty list of messages': [invalid('messages', 'empty_array'), withFields({ messages: [] })],
  'a message that is not an object': [
    type('messages[1]'),
    ...['Hello', 5, true, [], null].map((one) => withFields({ messages: [...hello.messages, one] })),
  ],
  'a message without a role': [
    invalid('messages[0].role', 'missing_required_parameter'),
    message({ content: 'Hello' }),
    message({}),
  ],
  'a role that is not a string': [
    type('messages[0].role'),
    ...[5, true, [], {}, null].map((role) => message({ role, content: 'Hello' })),
  ],
  'an unknown role': [
    value('messages[0].role'),
    ...['robot', 'User', ' user', '', '__proto__', 'constructor'].map((role) =>
      message({ role, content: 'Hello' }),
    ),
  ],
  'a message without content': [
    invalid('messages[0].content', 'missing_required_parameter'),
    message({ role: 'user' }),
    message({ role: 'system' }),
  ],
  'content of a wrong type': [type('messages[0].content'), ...[5, true, {}, null].map(saying)],
  'an empty list of content parts': [invalid('messages[0].content', 'empty_array'), saying([])],
  'a content part that is not an object': [
    type('messages[0].content[1]'),
    ...['Hello', 5, true, [], null].map((part) => saying([{ type: 'text', text: 'Hello' }, part])),
  ],
  'a content part without a type': [
    invalid('messages[0].content[0].type', 'missing_required_parameter'),
    saying([{ text: 'Hello' }]),
  ],
  'a content part of an unknown type': [
    value('messages[0].content[0].type'),
    saying([{ type: 'smell', smell: 'rose' }]),
  ],
  'a text part without `text`': [
    invalid('messages[0].content[0].text', 'missing_required_parameter'),
    saying([{ type: 'text' }]),
  ],
  'a text part whose `text` is not a string': [
    type('messages[0].content[0].text'),
    ...[5, true, [], {}, null].map((text) => saying([{ type: 'text', text }])),
  ],
  'images, audio and files': [
    unsupported('messages[0].content[1]'),
    ...[
      { type: 'image_url', image_url: { url: 'https://example.com/cat.png' } },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(10_000)}` } },
      { type: 'image_url' },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'file', file: { file_id: 'file-1' } },
    ].map((part) => saying([{ type: 'text', text: 'What is this?' }, part])),
  ],
  '10,001 messages': [
    invalid('messages', 'array_above_max_length'),
    withFields({ messages: Array(10_001).fill(hello.messages[0]) }),
  ],
  '10,001 parts in one message': [
    invalid('messages[0].content', 'array_above_max_length'),
    saying(Array(10_001).fill({ type: 'text', text: 'a' })),
  ],

  'a stream that is not a boolean': [
    type('stream'),
    ...['true', '', 1, 0, [], {}].map((stream) => withFields({ stream })),
  ],
  'stream options of a wrong type': [
    type('stream_options'),
    ...['x', 5, true, []].map((stream_options) => withFields({ stream: true, stream_options })),
  ],
  'an `include_usage` that is not a boolean': [
    type('stream_options.include_usage'),
    ...['true', 1, [], {}].map((include_usage) =>
      withFields({ stream: true, stream_options: { include_usage } }),
    ),
  ],
  ...forEach(
    [
      'temperature',
      'top_p',
      'min_p',
      'frequency_penalty',
      'presence_penalty',
      'repeat_penalty',
      'max_tokens',
      'max_completion_tokens',
      'seed',
      'top_k',
      'n',
      'top_logprobs',
    ],
    (field) => ({
      [`a \`${field}\` that is not a number`]: [
        type(field),
        ...['1', '', true, [], [1], {}].map((one) => withFields({ [field]: one })),
      ],
      // 1e999 is valid JSON, but JavaScript parses it as infinity.
      [`an infinite \`${field}\``]: [type(field), raw(`"${field}":1e999`), raw(`"${field}":-1e999`)],
    }),
  ),
  ...forEach(['max_tokens', 'max_completion_tokens', 'seed', 'top_k', 'n', 'top_logprobs'], (field) => ({
    [`a \`${field}\` that is not an integer`]: [type(field), withFields({ [field]: 1.5 })],
    [`a \`${field}\` beyond the safe integers of a double`]: [
      invalid(field, 'integer_above_max_value'),
      raw(`"${field}":1e300`),
      // OpenAI's seeds have 64 bits.
      ...(field === 'seed' ? [] : [raw(`"${field}":${2n ** 60n}`)]),
      raw(`"${field}":${2n ** 70n}`),
    ],
  })),
  ...forEach(
    [
      ['temperature', [2.1, 1e308]],
      ['top_p', [1.1, 1e308]],
      ['min_p', [1.1, 1e308]],
      ['frequency_penalty', [2.1, 1e308]],
      ['presence_penalty', [2.1, 1e308]],
      ['repeat_penalty', [101, 1e39, 1e308]],
    ],
    ([field, values]) => ({
      [`a \`${field}\` above its range`]: [
        invalid(field, 'decimal_above_max_value'),
        ...values.map((one) => withFields({ [field]: one })),
      ],
    }),
  ),
  ...forEach(
    [
      ['temperature', [-0.1, -1e308]],
      ['top_p', [-0.1, -1e308]],
      ['min_p', [-0.1, -1e308]],
      ['frequency_penalty', [-2.1, -1e308]],
      ['presence_penalty', [-2.1, -1e308]],
      ['repeat_penalty', [-1, 0, 1e-300]],
    ],
    ([field, values]) => ({
      [`a \`${field}\` below its range`]: [
        invalid(field, 'decimal_below_min_value'),
        ...values.map((one) => withFields({ [field]: one })),
      ],
    }),
  ),
  ...forEach(
    [
      ['max_tokens', -2],
      ['max_completion_tokens', -1],
      ['top_k', -1],
      ['n', 0],
      ['top_logprobs', -1],
    ],
    ([field, one]) => ({
      [`a \`${field}\` of ${one}`]: [invalid(field, 'integer_below_min_value'), withFields({ [field]: one })],
    }),
  ),
  'a `top_k` of more than 32 bits': [
    invalid('top_k', 'integer_above_max_value'),
    withFields({ top_k: 1e12 }),
    withFields({ top_k: 2 ** 31 }),
  ],

  'a stop sequence of a wrong type': [type('stop'), ...[5, true, {}].map((stop) => withFields({ stop }))],
  'a wrong type among the stop sequences': [
    type('stop[1]'),
    ...[5, true, null, [], {}].map((one) => withFields({ stop: ['a', one] })),
  ],
  '10,000 stop sequences': [
    invalid('stop', 'array_above_max_length'),
    withFields({ stop: Array(10_000).fill('a') }),
    withFields({ stop: Array(65).fill('a') }),
  ],
  'a stop sequence of one megabyte': [
    invalid('stop', 'string_above_max_length'),
    withFields({ stop: 'a'.repeat(2 ** 20) }),
    withFields({ stop: 'a'.repeat(1_025) }),
  ],
  'a list with a stop sequence of one megabyte': [
    invalid('stop[1]', 'string_above_max_length'),
    withFields({ stop: ['a', 'b'.repeat(2 ** 20)] }),
  ],
  'a lone surrogate in a stop sequence': [
    value('stop'),
    withFields({ stop: '\ud800' }),
    withFields({ stop: 'a\udc69b' }),
  ],
  'a lone surrogate in a list of stop sequences': [value('stop[1]'), withFields({ stop: ['a', '\ud83d'] })],

  'a `logit_bias` of a wrong type': [
    type('logit_bias'),
    ...['x', 5, true].map((logit_bias) => withFields({ logit_bias })),
  ],
  'a logit bias that is not a number': [
    type('logit_bias.5'),
    ...['1', true, null, [], {}].map((bias) => withFields({ logit_bias: { 5: bias } })),
    raw('"logit_bias":{"5":1e999}'),
  ],
  'a logit bias above 100': [
    invalid('logit_bias.5', 'decimal_above_max_value'),
    withFields({ logit_bias: { 5: 101 } }),
    withFields({ logit_bias: { 5: 1e308 } }),
  ],
  'a logit bias below -100': [
    invalid('logit_bias.5', 'decimal_below_min_value'),
    withFields({ logit_bias: { 5: -101 } }),
    withFields({ logit_bias: { 5: -1e308 } }),
  ],
  ...forEach(['-5', '5.5', '1e21', '1000000000000000000000', '4294967301', ''], (key) => ({
    [`a \`logit_bias\` key ${key}`]: [value(`logit_bias.${key}`), withFields({ logit_bias: { [key]: 1 } })],
  })),
  'a `logit_bias` key of one megabyte': [
    { ...value(`logit_bias.${'a'.repeat(64)}…`), message: expect.stringMatching(/^.{1,200}$/) },
    withFields({ logit_bias: { ['a'.repeat(2 ** 20)]: 1 } }),
  ],
  'a `logit_bias` with 300,001 tokens': [
    value('logit_bias'),
    withFields({ logit_bias: Object.fromEntries(Array.from({ length: 300_001 }, (_, id) => [id, 1])) }),
  ],

  'a `logprobs` that is not a boolean': [
    type('logprobs'),
    ...['true', 1, [], {}].map((logprobs) => withFields({ logprobs })),
  ],
  'a response format of a wrong type': [
    type('response_format'),
    ...['text', 5, true, []].map((response_format) => withFields({ response_format })),
  ],
  'a response format without a type': [
    invalid('response_format.type', 'missing_required_parameter'),
    withFields({ response_format: {} }),
  ],
  ...forEach(['tools', 'functions', 'modalities'], (field) => ({
    [`a \`${field}\` that is not a list`]: [
      type(field),
      ...['x', 5, true, {}].map((one) => withFields({ [field]: one })),
    ],
  })),
  ...forEach(['tool_choice', 'function_call'], (field) => ({
    [`a \`${field}\` of a wrong type`]: [
      type(field),
      ...[5, true, []].map((one) => withFields({ [field]: one })),
    ],
    [`an unknown value of \`${field}\``]: [value(field), withFields({ [field]: 'maybe' })],
  })),
  'an unknown modality': [value('modalities[1]'), withFields({ modalities: ['text', 'smell'] })],
  '900,000 modalities': [
    invalid('modalities', 'array_above_max_length'),
    withFields({ modalities: Array(900_000).fill('smell') }),
  ],
  "an assistant's `tool_calls` of a wrong type": [
    type('messages[0].tool_calls'),
    ...['x', 5, true, {}].map((tool_calls) => message({ role: 'assistant', content: 'a', tool_calls })),
  ],
  ...forEach(
    [
      ['that is not an object', type(''), ['x', 5, true, [], null]],
      ['without a type', missing('.type'), [{}, { function: { name: 'f' } }]],
      ['of an unknown type', value('.type'), [{ type: 'web_search' }, { type: '__proto__' }]],
      ['of a wrong type', type('.type'), [{ type: 5 }, { type: {} }]],
      ['that is custom', unsupported('.type'), [{ type: 'custom', custom: { name: 'f' } }]],
      ['without a function', missing('.function'), [{ type: 'function' }]],
      ['whose function is not an object', type('.function'), ['f', 5, []].map((one) => func(one))],
      ['without a name', missing('.function.name'), [func({})]],
      [
        'with a name that is not a string',
        type('.function.name'),
        [5, true, [], null].map((name) => func({ name })),
      ],
      ['with an empty name', value('.function.name'), [func({ name: '' })]],
      [
        'with a name of one megabyte',
        invalid('.function.name', 'string_above_max_length'),
        [func({ name: 'f'.repeat(2 ** 20) })],
      ],
      [
        'with a description that is not a string',
        type('.function.description'),
        [5, [], {}].map((description) => func({ name: 'f', description })),
      ],
      [
        'with parameters that are not an object',
        type('.function.parameters'),
        ['x', 5, true, []].map((parameters) => func({ name: 'f', parameters })),
      ],
      [
        'whose `strict` is not a boolean',
        type('.function.strict'),
        ['true', 1, {}].map((strict) => func({ name: 'f', strict })),
      ],
    ],
    ([what, expected, tools]) => ({
      [`a tool ${what}`]: [
        { ...expected, param: `tools[1]${expected.param}` },
        ...tools.map((tool) => withFields({ tools: [func({ name: 'g' }), tool] })),
      ],
    }),
  ),
  'two tools with the same name': [
    value('tools[1].function.name'),
    withFields({ tools: [func({ name: 'f' }), func({ name: 'f' })] }),
  ],
  '1,025 tools': [
    invalid('tools', 'array_above_max_length'),
    withFields({ tools: Array.from({ length: 1_025 }, (_, n) => func({ name: `f${n}` })) }),
  ],
  'a `tool_choice` without a type': [missing('tool_choice.type'), withFields({ tool_choice: {} })],
  'a `tool_choice` of an unknown type': [
    value('tool_choice.type'),
    withFields({ tool_choice: { type: 'x' } }),
  ],
  'a `tool_choice` of a custom tool': [
    unsupported('tool_choice.type'),
    withFields({ tool_choice: { type: 'custom', custom: { name: 'f' } } }),
  ],
  'a `tool_choice` without a name': [
    missing('tool_choice.function.name'),
    withFields({ tool_choice: func({}), tools: [func({ name: 'f' })] }),
  ],
  'an empty list of allowed tools': [
    invalid('tool_choice.allowed_tools.tools', 'empty_array'),
    withFields({ tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } } }),
  ],
  'a `parallel_tool_calls` that is not a boolean': [
    type('parallel_tool_calls'),
    ...['true', 1, [], {}].map((parallel_tool_calls) => withFields({ parallel_tool_calls })),
  ],
  'a tool message without `tool_call_id`': [
    missing('messages[0].tool_call_id'),
    message({ role: 'tool', content: 'noon' }),
  ],
  'a tool call without an id': [
    missing('messages[0].tool_calls[0].id'),
    message({ role: 'assistant', tool_calls: [func({ name: 'f', arguments: '{}' })] }),
  ],
  'a tool call with arguments that are not a string': [
    type('messages[0].tool_calls[0].function.arguments'),
    ...[{}, 5, null].map((json) =>
      message({ role: 'assistant', tool_calls: [{ id: 'a', ...func({ name: 'f', arguments: json }) }] }),
    ),
  ],
  'a tool call without arguments': [
    missing('messages[0].tool_calls[0].function.arguments'),
    message({ role: 'assistant', tool_calls: [{ id: 'a', ...func({ name: 'f' }) }] }),
  ],
  'tool calls without results, with ids of one megabyte': [
    { param: 'messages[0].role', message: expect.stringMatching(/^.{1,500}$/) },
    message({
      role: 'assistant',
      tool_calls: [{ id: 'a'.repeat(2 ** 20), ...func({ name: 'f', arguments: '{}' }) }],
    }),
  ],
  'a message of the deprecated role `function`': [
    unsupported('messages[0].role'),
    message({ role: 'function', name: 'f', content: 'noon' }),
  ],
  'a schema of a wrong type': [
    type('response_format.json_schema.schema'),
    ...['x', 5, true, []].map((schema) =>
      withFields({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } }),
    ),
  ],
  'a grammar that is not a string': [
    type('grammar'),
    ...[5, true, [], {}].map((grammar) => withFields({ grammar })),
  ],
  "an assistant's `function_call` of a wrong type": [
    type('messages[0].function_call'),
    ...['x', 5, true, []].map((function_call) => message({ role: 'assistant', content: 'a', function_call })),
  ],
}

const refusals: Record<string, Check> = Object.fromEntries(
  Object.entries(refused).map(([what, [expected, ...bodies]]) => [
    `rejected with 400: ${what} (OpenAI API)`,
    async (serve) => {
      const engine = scriptedEngine('Hello there.')
      const url = await serve(engine)

      for (const body of bodies) await expectError(await post(url, body), 400, expected)

      expect(engine.requests).toEqual([])
    },
  ]),
)

export const badInput: Record<string, Check> = {
  ...refusals,

  'a body over the limit gets a 413, and the connection serves the next call (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const tooLarge = Buffer.alloc(33 * 1024 ** 2, 'a')
    try {
      for (const headers of [{ 'content-length': tooLarge.length }, { 'transfer-encoding': 'chunked' }]) {
        const refused = await send(url, agent, tooLarge, headers)
        const next = await send(url, agent, Buffer.from(JSON.stringify(hello)))

        expect(refused.status).toBe(413)
        expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'request_too_large' } })
        expect(next).toMatchObject({ status: 200, port: refused.port })
      }
    } finally {
      agent.destroy()
    }
  },

  'ten megabytes of nesting are rejected without blocking the event loop (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const body of [
      '['.repeat(10_000_000),
      '{"a":'.repeat(2_000_000),
      raw(`"foo":${'['.repeat(5_000_000)}${']'.repeat(5_000_000)}`),
      // Escaped quotes before the brackets: a check that misreads strings would count the wrong depth.
      raw(`"foo":"${'\\"['.repeat(3_000_000)}","bar":${'['.repeat(200)}`),
    ]) {
      const blockedMs = await watched(async () => expectError(await post(url, body), 400))

      expect(blockedMs).toBeLessThan(1_000)
    }
  },

  '100,000 short messages are rejected without blocking the event loop (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const one of [hello.messages[0], {}, 5]) {
      const body = JSON.stringify(withFields({ messages: Array(100_000).fill(one) }))
      const blockedMs = await watched(async () =>
        expectError(await post(url, body), 400, invalid('messages', 'array_above_max_length')),
      )

      expect(blockedMs).toBeLessThan(1_000)
    }
  },

  'a `logit_bias` of 400,000 tokens does not block the event loop (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const body = raw(`"logit_bias":{${Array.from({ length: 400_000 }, (_, id) => `"${id}":1`).join(',')}}`)

    const blockedMs = await watched(async () => expectError(await post(url, body), 400, value('logit_bias')))

    expect(blockedMs).toBeLessThan(1_000)
  },

  'a `seed` of 64 bits is accepted, and equal seeds stay equal (OpenAI API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const seed of ['9223372036854775807', '9223372036854775807', '-9223372036854775808', '42']) {
      await completionOf(await post(url, raw(`"seed":${seed}`)))
    }

    const [first, again, ...others] = engine.requests.map(({ sampling }) => sampling?.seed)
    expect(first).toBe(again)
    expect(others.at(-1)).toBe(42)
    expect([first, ...others].every(Number.isSafeInteger)).toBe(true)
  },

  '10,000 messages are accepted (OpenAI API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const response = await chat(url, withFields({ messages: Array(10_000).fill(hello.messages[0]) }))

    expect((await completionOf(response)).usage?.prompt_tokens).toBe(10_000)
  },

  'model names with slashes, dots, control characters or lone surrogates get the usual 404 (OpenAI API)':
    async (serve) => {
      const engine = scriptedEngine(
        ({ model }) => new LlmError('not_found', `model "${model}" not found`, { param: 'model' }),
      )
      const url = await serve(engine)
      const names = [
        '../../etc/passwd',
        '/etc/passwd',
        'a/../b:c',
        'a\0b',
        'a\r\nx-evil: 1',
        '\u001b[2J',
        '\ud800',
        '__proto__',
        'constructor',
        ' ',
      ]

      for (const model of names) {
        for (const stream of [false, true]) {
          const response = await chat(url, withFields({ model, stream }))

          await expectError(response, 404, { code: 'model_not_found', message: `model "${model}" not found` })
        }
      }
    },

  'model paths with dots, control characters or broken escapes get a 404 (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const path of [
      '..%2f..%2fetc%2fpasswd',
      '%00',
      'a%0d%0ax-evil:1',
      '%ff',
      '%',
      '__proto__',
      'constructor',
      'm'.repeat(8_000),
    ]) {
      const response = await fetch(`${url}/v1/models/${path}`)

      expect(response.headers.get('x-evil')).toBeNull()
      await expectError(response, 404, { code: expect.toBeOneOf(['model_not_found', null]) })
    }
  },

  'a lone surrogate in a message is accepted and returned (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine(promptOf))

    for (const content of ['a\ud800b', '\udc69', '\ud83d', [{ type: 'text', text: 'x\ud83d' }]]) {
      const whole = await post(url, saying(content))
      const streamed = await post(url, { ...saying(content), stream: true })

      const said = typeof content === 'string' ? content : 'x\ud83d'
      expect(contentOf(await completionOf(whole))).toBe(said)
      expect(joined(await chunksOf(streamed))).toBe(said)
    }
  },

  'a byte order mark before the JSON is ignored (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await post(url, `\ufeff${JSON.stringify(hello)}`)

    expect(contentOf(await completionOf(response))).toBe('Hello there.')
  },

  'of two equal keys, the last one counts (OpenAI API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await expectError(await post(url, raw('"temperature":1,"temperature":3')), 400, {
      ...invalid('temperature', 'decimal_above_max_value'),
    })
    const response = await post(url, raw('"model":"other","temperature":3,"temperature":0'))

    expect(response.status).toBe(200)
    expect(engine.requests).toMatchObject([{ model: 'other', sampling: { temperature: 0 } }])
  },

  '`__proto__` and `constructor` as keys are ignored like unknown fields (OpenAI API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const evil =
      '"__proto__":{"stream":true,"temperature":0,"isAdmin":true},"constructor":{"prototype":{"seed":1}}'
    const inMessage = `{"model":"tiny","messages":[{"role":"user","content":"${said}",${evil}}]}`

    const responses = [await chat(url, hello), await post(url, raw(evil)), await post(url, inMessage)]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(engine.requests[1]).toEqual(engine.requests[0])
    expect(engine.requests[2]?.input).toEqual(engine.requests[0]?.input)
    expect({}).not.toHaveProperty('isAdmin')
  },

  'the `logit_bias` key `__proto__` is a text like any other (OpenAI API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    expect((await post(url, raw('"logit_bias":{"__proto__":1}'))).status).toBe(200)
    expect(engine.requests[0]?.sampling?.logitBias).toEqual([['__proto__', 1]])
  },

  'required fields inside `__proto__` count as missing (OpenAI API)': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await post(url, `{"__proto__":${JSON.stringify(hello)}}`)

    await expectError(response, 400, invalid('model', 'missing_required_parameter'))
  },

  'deep lists in unknown fields are ignored (OpenAI API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await chat(url, hello)
    const response = await post(url, raw(`"foo":${'['.repeat(127)}${']'.repeat(127)}`))

    expect(response.status).toBe(200)
    expect(engine.requests[1]).toEqual(engine.requests[0])
  },
}

const post = (url: string, body: Body): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: json,
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  })

/** Sends with its own agent, which `fetch` does not support. */
function send(
  url: string,
  agent: Agent,
  body: Buffer,
  headers = {},
): Promise<{ status: number | undefined; body: string; port: number | undefined }> {
  return new Promise((resolve, reject) => {
    const call = request(`${url}/v1/chat/completions`, {
      method: 'POST',
      agent,
      headers: { ...json, ...headers },
    })
    call.once('error', reject)
    call.once('response', (response: IncomingMessage) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode, body, port: call.socket?.localPort }),
        reject,
      )
    })
    call.end(body)
  })
}

/** Measures the longest blocking of the event loop, in ms. The server runs in the same event loop. */
async function watched(work: () => Promise<void>): Promise<number> {
  const delays = monitorEventLoopDelay({ resolution: 5 })
  delays.enable()
  await work()
  delays.disable()
  return delays.max / 1e6
}

function forEach<const Item>(items: readonly Item[], rows: (item: Item) => Refused): Refused {
  return Object.assign({}, ...items.map(rows))
}
