/**
 * The errors of Anthropic's API for invalid requests, row by row. Clients match on some of the texts. Where a local server
 * needs no such error, the request is answered.
 */
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, expect, test } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import { listen } from '../../../../../test/support/listen.ts'
import { post, serve } from '../../../../../test/support/served.ts'
import { createLlm } from '../../create-llm.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'
import { routesFor } from '../index.ts'

const models = emptyFolder()
const hello = { role: 'user', content: 'Hi' }
const base = { model: 'tiny', max_tokens: 2_000, messages: [hello] }
const blocks = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const text = (more: object = {}) => ({ type: 'text', text: 'Hi', ...more })
const tool = (more: object = {}) => ({ name: 'now', input_schema: { type: 'object' }, ...more })
const call = (id = 'toolu_1') => ({ type: 'tool_use', id, name: 'now', input: {} })
const result = (id = 'toolu_1') => ({ type: 'tool_result', tool_use_id: id })
const cached = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } })
const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const prefill = (content: string) => ({ messages: [hello, { role: 'assistant', content }] })

/** Fields of the body, or a whole body as text, and the message of the 400. */
const rejected: readonly (readonly [what: string, fields: object | string, message: string])[] = [
  ['a missing `model`', { model: undefined }, 'model: Field required'],
  ['a missing `max_tokens`', { max_tokens: undefined }, 'max_tokens: Field required'],
  ['missing `messages`', { messages: undefined }, 'messages: Field required'],
  ['a wrong JSON type', { max_tokens: '5' }, 'max_tokens: Input should be a valid integer'],
  ['malformed JSON', '{"model":', ''],
  ['empty messages', { messages: [] }, 'messages: at least one message is required'],
  ['a high temperature', { temperature: 1.01 }, 'temperature: Input should be less than or equal to 1'],
  [
    'a negative temperature',
    { temperature: -0.1 },
    'temperature: Input should be greater than or equal to 0',
  ],
  [
    'a blank stop sequence',
    { stop_sequences: [' \n'] },
    'stop_sequences: each stop sequence must contain non-whitespace',
  ],
  [
    'an unknown role',
    { messages: [{ role: 'robot', content: 'Hi' }] },
    "messages.0.role: Input should be 'user', 'assistant' or 'system'",
  ],
  [
    'a tool call without a result',
    { messages: [hello, { role: 'assistant', content: [call()] }, hello] },
    'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  ],
  [
    'a result without a tool call',
    blocks(result()),
    'messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
  ],
  [
    'two tool calls with one id',
    { messages: [hello, { role: 'assistant', content: [call(), call()] }] },
    'messages: `tool_use` ids must be unique',
  ],
  [
    'two results of one tool call',
    {
      messages: [
        hello,
        { role: 'assistant', content: [call()] },
        { role: 'user', content: [result(), result()] },
      ],
    },
    'messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_1',
  ],
  ['two tools with one name', { tools: [tool(), tool()] }, 'tools: Tool names must be unique.'],
  [
    'a tool name with a space',
    { tools: [tool({ name: 'a b' })] },
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  ],
  [
    'a schema without a type',
    { tools: [tool({ input_schema: {} })] },
    'tools.0.custom.input_schema.type: Field required',
  ],
  [
    'a schema of another type',
    { tools: [tool({ input_schema: { type: 'array' } })] },
    "tools.0.custom.input_schema.type: Input should be 'object'",
  ],
  [
    'a choice of an absent tool',
    { tools: [tool()], tool_choice: { type: 'tool', name: 'x' } },
    "tool_choice.name: Tool 'x' not found in provided tools",
  ],
  [
    'a tool choice without tools',
    { tool_choice: { type: 'any' } },
    'tool_choice: tool_choice may only be specified while providing tools',
  ],
  [
    'a thinking budget of `max_tokens`',
    { thinking: { type: 'enabled', budget_tokens: 2_000 } },
    'max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`',
  ],
  [
    'five breakpoints',
    blocks(...Array(5).fill(text(cached()))),
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'four breakpoints and one of the request',
    { ...blocks(...Array(4).fill(text(cached())), text()), ...cached() },
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'a long breakpoint after a short one',
    blocks(text(cached('5m')), text(cached('1h'))),
    "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
  ],
  [
    'a breakpoint on an empty text',
    blocks(text({ text: '', ...cached() }), text()),
    'messages.0.content.0.text: cache_control cannot be set for empty text blocks',
  ],
  [
    'a breakpoint on thinking',
    {
      messages: [
        hello,
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: 'b', ...cached() }] },
        hello,
      ],
    },
    'messages.1.content.0.cache_control: Extra inputs are not permitted',
  ],
  [
    'a breakpoint of another type',
    blocks(text({ cache_control: { type: 'x' } })),
    "messages.0.content.0.cache_control.type: Input should be 'ephemeral'",
  ],
  [
    'a breakpoint of ten minutes',
    blocks(text(cached('10m'))),
    "messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'",
  ],
  [
    'an unknown block',
    blocks({ type: 'x' }),
    "messages.0.content.0: Input tag 'x' found using 'type' does not match any of the expected tags: 'text', 'image', 'tool_result', 'document', 'search_result'",
  ],
  [
    'an image, which no model here can see',
    blocks(png),
    'messages.0.content.0: An image is not supported by this model.',
  ],
  [
    'a PDF file',
    blocks({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } }),
    "messages.0.content.0.source: Input tag 'base64' found using 'type' does not match any of the expected tags: 'text', 'content'",
  ],
  [
    'citations of a document',
    blocks({ type: 'document', source: { type: 'text', data: 'Rain.' }, citations: { enabled: true } }),
    'messages.0.content.0.citations: `citations` is not supported yet.',
  ],
  [
    'citations of a search result in a tool result',
    {
      messages: [
        hello,
        { role: 'assistant', content: [call()] },
        {
          role: 'user',
          content: [
            {
              ...result(),
              content: [
                { type: 'search_result', source: 'a', title: 'b', content: [], citations: { enabled: true } },
              ],
            },
          ],
        },
      ],
    },
    'messages.2.content.0.content.0.citations: `citations` is not supported yet.',
  ],
  [
    'no tokens in a stream',
    { max_tokens: 0, stream: true },
    'max_tokens: 0 only caches the prompt, so it cannot be combined with `stream`.',
  ],
  [
    'no tokens for a thought',
    { max_tokens: 0, thinking: { type: 'enabled', budget_tokens: 1_024 } },
    'max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`',
  ],
  [
    'no tokens for an output format',
    { max_tokens: 0, output_config: { format: { type: 'json_schema', schema: {} } } },
    'max_tokens: 0 only caches the prompt, so it cannot be combined with an output format.',
  ],
  [
    'no tokens for a forced tool',
    { max_tokens: 0, tools: [tool()], tool_choice: { type: 'any' } },
    'max_tokens: 0 only caches the prompt, so it cannot be combined with a forced tool.',
  ],
]

type Answered = [what: string, fields: object, headers?: Readonly<Record<string, string>>]
const answered: readonly Answered[] = [
  ['`max_tokens` above any context', { max_tokens: 10_000_000 }],
  ['a temperature together with thinking', { thinking: { type: 'adaptive' }, temperature: 0.5 }],
  ['`temperature` together with `top_p`', { temperature: 0.5, top_p: 0.9 }],
  ['empty content in the history', { messages: [{ role: 'user', content: [] }, hello] }],
  ['an empty text', blocks(text({ text: '' }), text())],
  ['an assistant message with a space at its end', prefill('The answer is ')],
  ['an assistant message at the end', prefill('The answer is')],
  ['a small thinking budget', { thinking: { type: 'enabled', budget_tokens: 1 } }],
  [
    'a forced tool together with thinking',
    { tools: [tool()], tool_choice: { type: 'any' }, thinking: { type: 'enabled', budget_tokens: 1_024 } },
  ],
  [
    'a thought with another signature',
    {
      messages: [
        hello,
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: 'a', signature: 'changed' }, text()],
        },
        hello,
      ],
    },
  ],
  ['an unknown field', { made_up: true }],
  ['a system message at the beginning', { messages: [{ role: 'system', content: 'Be brief.' }, hello] }],
  ['no version', {}, {}],
  ['an unknown version', {}, { 'anthropic-version': 'tomorrow' }],
  ['an unknown beta', {}, { 'anthropic-beta': 'made-up-2099-01-01,other' }],
  ['citations in a text', blocks(text({ citations: [] }), text({ citations: null }))],
  [
    'a document with citations turned off',
    blocks({ type: 'document', source: { type: 'text', data: 'Rain.' }, citations: { enabled: false } }),
  ],
  ['a breakpoint that is null', blocks(text({ cache_control: null }))],
]

const llm = await createLlm({ models, engine: scriptedEngine('Hi.') })
const { url, close } = await listen(toNodeHandler(routesFor(), llm))
afterAll(async () => {
  await close()
  await llm.close()
})

const send = async (
  body: object | string,
  { at = url, headers = {} }: { at?: string; headers?: Readonly<Record<string, string>> } = {},
) => {
  const sent = typeof body === 'string' ? body : { ...base, ...body }
  const response = await post(`${at}/v1/messages`, sent, headers)
  return {
    status: response.status,
    body: (await response.json()) as { error: { type: string; message: string } },
    headers: response.headers,
  }
}

test.each(rejected)('%s is a 400', async (_what, fields, message) => {
  const { status, body, headers } = await send(fields)

  expect([status, body]).toEqual([
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: message || expect.any(String) },
      request_id: headers.get('request-id'),
    },
  ])
})

test.each<Answered>(answered)(
  '%s is answered',
  async (_what, fields, headers = { 'anthropic-version': '2023-06-01' }) => {
    const response = await fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...base, ...fields }),
    })

    expect([response.status, (await response.json()) as object]).toMatchObject([200, { type: 'message' }])
  },
)

test('a request needs a valid key with the permission to use the model', async () => {
  const served = await serve({ models, engine: scriptedEngine('Hi.'), auth: 'keys', database: ':memory:' })
  const { secret, key } = await served.llm.keys.create({ name: 'a', models: ['other'] })
  const errorWith = async (headers: Readonly<Record<string, string>>, body = {}) => {
    const answer = await send(body, { at: served.url, headers })
    return [answer.status, answer.body.error.type, answer.body.error.message]
  }
  const refused = [403, 'permission_error', 'This caller may not use the model "tiny".']

  expect(await errorWith({})).toEqual([401, 'authentication_error', expect.any(String)])
  expect(await errorWith({ 'x-api-key': 'wrong' })).toEqual([401, 'authentication_error', expect.any(String)])
  // The key is checked before the body.
  expect((await errorWith({ 'x-api-key': 'wrong' }, { model: 5 }))[0]).toBe(401)
  expect(await errorWith({ 'x-api-key': secret })).toEqual(refused)
  expect(await errorWith({ authorization: `Bearer ${secret}` })).toEqual(refused)
  await served.llm.keys.revoke(key.id)
  expect((await errorWith({ 'x-api-key': secret }))[0]).toBe(401)
})

test('an unknown model is a 404, and a prompt beyond the context a 400 with the text that agents match on', async () => {
  const served = await serve({ models, local: { contextSize: 64 } })
  const unknown = await send({ model: 'qwen3:8b' }, { at: served.url })
  // The answer may take more than the context has room for, and then ends early.
  const short = await send({ max_tokens: 5_000, temperature: 0 }, { at: served.url })
  const long = await send(blocks(text({ text: 'word '.repeat(500) })), { at: served.url })

  expect([unknown.status, unknown.body]).toMatchObject([
    404,
    { error: { type: 'not_found_error', message: 'model: qwen3:8b' } },
  ])
  expect(short.status).toBe(200)
  expect([long.status, long.body]).toMatchObject([
    400,
    {
      error: {
        type: 'invalid_request_error',
        message: expect.stringMatching(/^prompt is too long: \d+ tokens > 64 maximum$/),
      },
    },
  ])
})
