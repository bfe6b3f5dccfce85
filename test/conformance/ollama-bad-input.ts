/** Invalid and hostile bodies for the Ollama API. Each gets a 400, and none reaches the engine. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { callOllama, expectOllamaError, hello } from './calls.ts'
import type { Check } from './suite.ts'

type Path = Parameters<typeof callOllama>[1]
type Body = Parameters<typeof callOllama>[2]
/** By name: the routes, the expected error text, and the bodies. */
type Refused = Readonly<
  Record<string, readonly [paths: readonly Path[], error: string | RegExp, ...bodies: Body[]]>
>

const all: readonly Path[] = ['chat', 'generate', 'show', 'embed', 'embeddings']
const asking: readonly Path[] = ['chat', 'generate']
const [chat, generate, show, embed, embeddings] = all.map((path) => [path]) as [
  ...[[Path], [Path], [Path]],
  ...[[Path], [Path]],
]
const embedding: readonly Path[] = [...embed, ...embeddings]

/** A body that is valid for all routes. Each route ignores the fields of the other routes. */
const question = { ...hello, prompt: 'Hello', input: 'Hello' }
const withFields = (fields: object): object => ({ ...question, ...fields })
const withOptions = (options: object): object => withFields({ options })
const tool = (fields: object): object => ({ type: 'function', function: { name: 'f', ...fields } })
const message = (...fields: readonly unknown[]): object => ({ model: 'tiny', messages: fields })
/** Adds fields as JSON text, for numbers that `JSON.stringify` cannot write. */
const raw = (fields: string): string => `${JSON.stringify(question).slice(0, -1)},${fields}}`
const bytes = (...values: readonly (string | number)[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(
    Buffer.concat(values.map((one) => (typeof one === 'string' ? Buffer.from(one) : Buffer.of(one)))),
  )

function forEach<const Item>(items: readonly Item[], rows: (item: Item) => Refused): Refused {
  return Object.assign({}, ...items.map(rows))
}

/** Matches the error for a field: the text of Modelmount, or Ollama's text for a wrong type. */
function wrong(param: string): RegExp {
  const literal = (text: string): string => text.replaceAll(/[.[\]]/g, '\\$&')
  const field = literal(param.replaceAll(/\[\d+\]/g, ''))
  const option = field.replace(/^options\\\./, '')
  return new RegExp(
    `^(invalid ${literal(param)}: |option "${option}" must be of |json: cannot unmarshal \\w+ (\\S+ )?into Go struct field \\w+\\.${field} of type )`,
  )
}

const numbers = ['temperature', 'top_p', 'min_p', 'repeat_penalty', 'presence_penalty', 'frequency_penalty']
const integers = ['num_predict', 'num_ctx', 'top_k', 'seed', 'repeat_last_n', 'num_keep', 'num_batch']
const moreIntegers = ['num_gpu', 'main_gpu', 'num_thread', 'draft_num_predict']

const refused: Refused = {
  'malformed JSON': [
    all,
    '',
    ...['{', '{"model":"tiny"', '{"model":"ti', '{"a":1,}', "{'model': 'tiny'}", `${JSON.stringify(hello)}}`],
    raw('"options":{"temperature":NaN}'),
    raw('"keep_alive":-Infinity'),
  ],
  'an empty body': [all, 'missing request body', '', ' \n'],
  'invalid UTF-8': [
    all,
    '',
    bytes('{"model":"', 0xff, '"}'),
    bytes('{"model":"', 0xc3, '"}'),
    bytes(0xff, 0xfe, '{', 0),
  ],
  'nesting beyond 128 levels': [
    all,
    'The request body is nested',
    raw(`"foo":${'['.repeat(129)}${']'.repeat(129)}`),
    raw(`"options":${'{"a":'.repeat(129)}1${'}'.repeat(129)}`),
    '['.repeat(1_000_000),
  ],
  'a body that is not an object': [
    all,
    /^json: cannot unmarshal \w+ into Go value of type api\.\w+Request$/,
    '"x"',
    '5',
    'true',
    '[]',
    '[{}]',
  ],

  'a model that is not a string': [
    all,
    wrong('model'),
    ...[5, true, [], {}].map((model) => withFields({ model })),
  ],
  'a model name of one megabyte': [
    all,
    wrong('model'),
    withFields({ model: 'm'.repeat(2 ** 20) }),
    withFields({ model: '/'.repeat(2 ** 20) }),
  ],
  'a model name with a lone surrogate': [
    all,
    'invalid model name',
    ...['\ud800', 'tiny:\udc00', 'a/\ud83d/b'].map((model) => withFields({ model })),
  ],

  'messages that are not a list': [
    chat,
    wrong('messages'),
    ...['Hello', 5, true, {}].map((messages) => withFields({ messages })),
  ],
  'a message that is not an object': [
    chat,
    wrong('messages[1]'),
    ...['Hello', 5, true, [], null].map((one) => message(...hello.messages, one)),
  ],
  'a role that is not a string': [
    chat,
    wrong('messages[0].role'),
    ...[5, true, [], {}].map((role) => message({ role, content: 'Hello' })),
  ],
  'a role of one megabyte': [
    chat,
    wrong('messages[0].role'),
    message({ role: 'r'.repeat(2 ** 20), content: 'Hello' }),
    message({ role: 'r'.repeat(65), content: 'Hello' }),
  ],
  ...forEach(['content', 'thinking'], (field) => ({
    [`a message with a \`${field}\` of a wrong type`]: [
      chat,
      wrong(`messages[0].${field}`),
      ...[5, true, {}, [], [{ type: 'text', text: 'Hello' }]].map((one) => message({ [field]: one })),
    ],
  })),
  ...forEach(['images', 'tool_calls'], (field) => ({
    [`a message with \`${field}\` of a wrong type`]: [
      chat,
      wrong(`messages[0].${field}`),
      ...['x', 5, true, {}].map((one) => message({ content: 'Hello', [field]: one })),
    ],
  })),
  '10,001 messages or more': [
    chat,
    wrong('messages'),
    withFields({ messages: Array(10_001).fill(hello.messages[0]) }),
    withFields({ messages: Array(100_000).fill({}) }),
  ],
  'tools of a wrong type': [
    chat,
    wrong('tools'),
    ...['x', 5, true, {}].map((tools) => withFields({ tools })),
    withFields({ tools: Array(1_025).fill(tool({})) }),
  ],
  'a tool that is not an object': [
    chat,
    wrong('tools[1]'),
    ...['x', 5, true, [], null].map((one) => withFields({ tools: [tool({}), one] })),
  ],
  'a tool without a function': [
    chat,
    wrong('tools[0].function'),
    ...[{}, { type: 'function' }, { function: 'f' }, { function: [] }, { function: null }].map((one) =>
      withFields({ tools: [one] }),
    ),
  ],
  'a tool without a name': [
    chat,
    wrong('tools[0].function.name'),
    ...[undefined, null, '', 5, {}, [], 'n'.repeat(129), 'n'.repeat(2 ** 20)].map((name) =>
      withFields({ tools: [tool({ name })] }),
    ),
  ],
  ...forEach(['description', 'parameters'], (field) => ({
    [`a tool with \`${field}\` of a wrong type`]: [
      chat,
      wrong(`tools[0].function.${field}`),
      ...[5, true, []].map((one) => withFields({ tools: [tool({ [field]: one })] })),
    ],
  })),
  'a tool call without a function': [
    chat,
    /^(invalid messages\[0\]\.tool_calls\[0\]|json: cannot unmarshal \w+ into Go struct field ChatRequest\.messages\.tool_calls of type )/,
    ...['x', 5, null, [], {}, { id: 'a' }, { function: {} }, { function: { name: '' } }].map((one) =>
      message({ role: 'assistant', tool_calls: [one] }),
    ),
  ],
  'a tool call with arguments that are not an object': [
    chat,
    wrong('messages[0].tool_calls[0].function.arguments'),
    ...['{}', 5, true, []].map((one) =>
      message({ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: one } }] }),
    ),
  ],
  ...forEach(['tool_name', 'tool_call_id'], (field) => ({
    [`a tool message with \`${field}\` of a wrong type`]: [
      chat,
      wrong(`messages[0].${field}`),
      ...[5, true, [], {}].map((one) => message({ role: 'tool', content: '5', [field]: one })),
    ],
  })),

  ...forEach(['prompt', 'system', 'suffix', 'template'], (field) => ({
    [`a \`${field}\` of a wrong type`]: [
      generate,
      wrong(`${field}`),
      ...[5, true, [], {}, ['Hello']].map((one) => withFields({ [field]: one })),
    ],
  })),
  'a `raw` that is not a boolean': [
    generate,
    wrong('raw'),
    ...['true', 1, [], {}].map((one) => withFields({ raw: one })),
  ],
  'images of a wrong type': [
    generate,
    wrong('images'),
    ...['x', 5, true, {}].map((images) => withFields({ images })),
  ],
  'a `context` of a wrong type': [
    generate,
    wrong('context'),
    ...['x', 5, true, {}].map((context) => withFields({ context })),
  ],
  'a `context` with a value that is not a token id': [
    generate,
    wrong('context'),
    ...[-1, 1.5, 2 ** 31, '5', null, true, [], {}].map((one) => withFields({ context: [1, one] })),
    raw('"context":[1,1e999]'),
  ],

  ...forEach(['stream', 'truncate', 'shift', 'logprobs', '_debug_render_only'], (field) => ({
    [`a \`${field}\` that is not a boolean`]: [
      asking,
      wrong(`${field}`),
      ...['true', '', 1, 0, [], {}].map((one) => withFields({ [field]: one })),
    ],
  })),
  'a `top_logprobs` that is not an integer from 0 to 20': [
    asking,
    /^(top_logprobs must be between 0 and 20$|json: cannot unmarshal \w+ (\S+ )?into Go struct field \w+\.top_logprobs of type int$)/,
    ...['5', true, [], {}, -1, 21, 1.5, 1e300].map((top_logprobs) => withFields({ top_logprobs })),
    raw('"top_logprobs":1e999'),
  ],
  'an unsupported format': [
    asking,
    /^invalid format: .*; expected "json" or a valid JSON Schema object$/,
    ...['xml', 5, true, [], '\ud800'].map((format) => withFields({ format })),
  ],
  'an invalid `think`': [
    asking,
    /^(invalid think value: |think must be a boolean or string )/,
    ...['maybe', '', 1, [], {}].map((think) => withFields({ think })),
  ],
  'an invalid `keep_alive`': [
    asking,
    /^(time: (invalid duration|missing unit in duration|unknown unit) |Unsupported type: ')/,
    ...['300', '5 minutes', '', '-', '1e3s', 'Infinity', '1'.repeat(2 ** 20), true, [], {}].map(
      (keep_alive) => withFields({ keep_alive }),
    ),
    withFields({ keep_alive: '9'.repeat(90).concat('h') }),
  ],

  'options that are not an object': [
    asking,
    wrong('options'),
    ...['x', 5, true, []].map((options) => withFields({ options })),
  ],
  ...forEach([...numbers, ...integers, ...moreIntegers], (name) => ({
    [`a \`${name}\` that is not a number`]: [
      asking,
      wrong(`options.${name}`),
      ...['1', '', true, [], [1], {}].map((one) => withOptions({ [name]: one })),
      // 1e999 is valid JSON, but JavaScript parses it as infinity.
      raw(`"options":{"${name}":1e999}`),
      raw(`"options":{"${name}":-1e999}`),
    ],
    [`a \`${name}\` that is too large`]: [
      asking,
      wrong(`options.${name}`),
      raw(`"options":{"${name}":1e300}`),
      raw(`"options":{"${name}":-1e300}`),
      raw(`"options":{"${name}":${2n ** 63n}}`),
    ],
  })),
  'a `use_mmap` that is not a boolean': [
    asking,
    wrong('options.use_mmap'),
    ...['true', 1, [], {}].map((use_mmap) => withOptions({ use_mmap })),
  ],
  ...forEach(
    [
      ['temperature', [-0.1, 101]],
      ['top_p', [-0.1, 1.1]],
      ['min_p', [-0.1, 1.1]],
      ['repeat_penalty', [-3, 0, 101]],
      ['presence_penalty', [-101, 101]],
      ['frequency_penalty', [-101, 101]],
      ['top_k', [-1, 2 ** 31]],
      ['repeat_last_n', [-2, 2 ** 31]],
      ['num_predict', [2 ** 31, -(2 ** 31)]],
      ['num_ctx', [2 ** 24 + 1]],
    ],
    ([name, values]) => ({
      [`a \`${name}\` out of its range`]: [
        asking,
        wrong(`options.${name}`),
        ...values.map((one) => withOptions({ [name]: one })),
      ],
    }),
  ),
  'a `typical_p` other than 1': [
    asking,
    wrong('options.typical_p'),
    ...[0.5, 0, 1e308, '1', true].map((typical_p) => withOptions({ typical_p })),
  ],
  'stop sequences of a wrong type': [
    asking,
    wrong('options.stop'),
    ...['a', 5, true, {}].map((stop) => withOptions({ stop })),
    withOptions({ stop: Array(65).fill('a') }),
    withOptions({ stop: Array(900_000).fill('a') }),
  ],
  'an invalid stop sequence': [
    asking,
    wrong('options.stop[1]'),
    ...[5, null, true, [], {}, '\ud800', 'a\udc69b', 'a'.repeat(1_025)].map((one) =>
      withOptions({ stop: ['a', one] }),
    ),
  ],

  'an embedding input that is not text': [
    embed,
    'invalid input',
    ...[5, true, {}, [5], ['a', null], [['a']], [{}], Array(100_000).fill({})].map((input) =>
      withFields({ input }),
    ),
  ],
  '10,001 embedding inputs': [embed, 'invalid input', withFields({ input: Array(10_001).fill('a') })],
  'dimensions that are not a number': [
    embed,
    wrong('dimensions'),
    ...['8', true, [], {}].map((dimensions) => withFields({ dimensions })),
    raw('"dimensions":1e999'),
  ],
  'an embedding prompt that is not text': [
    embeddings,
    wrong('prompt'),
    ...[5, true, [], {}, ['Hello']].map((prompt) => withFields({ prompt })),
  ],
  'an invalid `keep_alive` or option of an embedding request': [
    embedding,
    /^(time: invalid duration "soon"|option "num_ctx" must be of type integer|.* field \w+\.options of type .*)$/,
    ...[{ keep_alive: 'soon' }, { options: [] }, { options: { num_ctx: 'x' } }].map(withFields),
  ],

  ...forEach(['name', 'system', 'template'], (field) => ({
    [`a \`${field}\` of a wrong type in show`]: [
      show,
      wrong(`${field}`),
      ...[5, true, [], {}].map((one) => ({ model: 'tiny', [field]: one })),
    ],
  })),
  'a `verbose` that is not a boolean': [
    show,
    wrong('verbose'),
    ...['true', 1, [], {}].map((verbose) => ({ model: 'tiny', verbose })),
  ],
  'options of a wrong type in show': [
    show,
    wrong('options'),
    ...['x', 5, true, []].map((options) => ({ model: 'tiny', options })),
  ],
}

const refusals: Record<string, Check> = Object.fromEntries(
  Object.entries(refused).map(([what, [paths, expected, ...bodies]]) => [
    `rejected with 400: ${what} (Ollama API)`,
    async (serve) => {
      const engine = scriptedEngine('Hello there.')
      const url = await serve(engine)

      for (const path of paths)
        for (const body of bodies) {
          const response = await callOllama(url, path, body)

          const { error } = (await response.clone().json()) as { error: string }
          expect(error).toMatch(expected)
          expect(error).not.toMatch(/Invalid input|Too (big|small)/)
          expect(error.length).toBeLessThan(300)
          await expectOllamaError(response, 400)
        }

      expect(engine.requests).toEqual([])
    },
  ]),
)

export const badInput: Record<string, Check> = {
  ...refusals,

  '450,000 unknown fields are ignored (Ollama API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const fields = Array.from({ length: 450_000 }, (_, index) => `"Field${index}":1`)

    const response = await callOllama(url, 'generate', raw(fields.join()))

    expect(response.status).toBe(200)
    expect(engine.requests).toHaveLength(1)
  },

  '`__proto__` and similar keys are not read as fields (Ollama API)': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const name of ['__proto__', '__PROTO__', 'constructor', 'prototype'])
      await expectOllamaError(
        await callOllama(url, 'chat', `{"${name}":${JSON.stringify(hello)}}`),
        400,
        'model is required',
      )
    expect(engine.requests).toEqual([])
  },
}
