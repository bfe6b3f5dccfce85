/**
 * A session of an agent like Claude Code, against the built-in model: probes, calls with other models' names, a loop with
 * tools, and telemetry. The requests are written after its documentation and public reports.
 */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

const main = 'claude-sonnet-5-20260901'
const small = 'claude-haiku-5-20260901'
const betas = ['claude-code-20250219', 'interleaved-thinking-2025-05-14', 'made-up-2099-01-01']
const ephemeral = { cache_control: { type: 'ephemeral' as const } }

let llm: Llm
let server: Listening
let client: Anthropic
const loggedErrors: unknown[] = []
/** Cached tokens that the turns of the session have read. */
const readTokens: number[] = []

beforeAll(async () => {
  const log = (details: object) => void loggedErrors.push(details)
  llm = await createLlm({
    auth: 'keys',
    database: ':memory:',
    models: emptyFolder(),
    aliases: { 'claude-*': 'tiny', 'claude-local-tiny': 'tiny' },
    modelSettings: { tiny: { temperature: 0 } },
    logger: { warn: log, error: log },
  })
  const { secret } = await llm.keys.create({ name: 'agent', models: ['tiny'] })
  server = await listen(toNodeHandler(routesFor(), llm))
  client = new Anthropic({
    baseURL: server.url,
    apiKey: secret,
    maxRetries: 0,
    defaultHeaders: {
      'anthropic-beta': betas.join(','),
      'user-agent': 'claude-cli/2.1.200 (external, cli)',
      'x-app': 'cli',
      'x-claude-code-session-id': '3b6f1f7e-3f5a-4f5b-9d4e-2f8f3f3f3f3f',
    },
  })
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

/** The first system block, whose text differs between calls and is no part of the prompt. */
const billing = (cch: string) => ({
  type: 'text' as const,
  text: `x-anthropic-billing-header: cc_version=2.1.200; cc_entrypoint=cli; cch=${cch};`,
})
const identity = { type: 'text' as const, text: 'You are an agent that edits code.', ...ephemeral }
const rules = Array.from({ length: 30 }, (_, line) => `Rule ${line}: read a file before you change it.`)
const instructions = { type: 'text' as const, text: rules.join('\n'), ...ephemeral }

const schema = (...names: string[]) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object' as const,
  properties: Object.fromEntries(
    names.map((name) => [name, { type: 'string', description: `The ${name}.` }]),
  ),
  required: names,
  additionalProperties: false,
})
const tools = [
  { name: 'Read', description: 'Reads a file.', input_schema: schema('file_path') },
  { name: 'Bash', description: 'Runs a command.', input_schema: schema('command', 'description') },
  {
    name: 'Edit',
    description: 'Replaces a text in a file.',
    input_schema: schema('file_path', 'old_string', 'new_string'),
    eager_input_streaming: true,
  },
]
const reminder = '<system-reminder>\nThe date is 2026-11-27.\n</system-reminder>'
const question = {
  role: 'user' as const,
  content: [
    { type: 'text' as const, text: reminder },
    { type: 'text' as const, text: 'What does index.ts do?', ...ephemeral },
  ],
}

/** Fields of each call of the main loop. */
const loop = (cch: string, messages: object[]) => ({
  model: main,
  max_tokens: 32_000,
  system: [billing(cch), identity, instructions],
  tools,
  messages,
  metadata: { user_id: 'user_1_account__session_2' },
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'medium' },
})

/** Streams one call of the main loop to its end, with a short answer. */
async function ask(cch: string, messages: object[]): Promise<Anthropic.Message> {
  const stream = client.messages.stream(
    { ...loop(cch, messages), max_tokens: 16 } as never,
    {
      query: { beta: 'true' },
    } as never,
  )
  return stream.finalMessage()
}

const post = (path: string, body: object) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${client.apiKey}` },
    body: JSON.stringify(body),
  })

const sumOf = ({ input_tokens, cache_read_input_tokens, cache_creation_input_tokens }: Anthropic.Usage) =>
  input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0)

/** The number of prompt tokens in the cache after a call. */
const cachedBy = ({ usage: { cache_read_input_tokens, cache_creation_input_tokens } }: Anthropic.Message) =>
  (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0)

test('a session runs without an error, and its usage shows what the cache has saved', async () => {
  // The start: a warm-up, the list of models, and a probe of the key with one token.
  const warmup = await fetch(`${server.url}/api/hello`, { method: 'HEAD' })
  expect([200, 404]).toContain(warmup.status)
  const list = await fetch(`${server.url}/v1/models?limit=1000`, {
    headers: { authorization: `Bearer ${client.apiKey}` },
    redirect: 'error',
  })
  const { data } = (await list.json()) as { data: { id: string }[] }
  expect(data.map(({ id }) => id).filter((id) => /claude|anthropic/i.test(id))).toEqual(['claude-local-tiny'])
  const probe = { model: small, max_tokens: 1, messages: [{ role: 'user' as const, content: 'quota' }] }
  expect((await client.messages.create(probe)).model).toBe(small)

  // A side call for the title of the session, with the small model and structured output.
  const title = await client.messages.create({
    ...{ model: small, max_tokens: 64, temperature: 1, tools: [] },
    system: [billing('00000'), { type: 'text', text: 'Write a title.' }],
    messages: [{ role: 'user', content: 'What does index.ts do?' }],
    output_config: {
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { title: { type: 'string', maxLength: 12 } },
          required: ['title'],
          additionalProperties: false,
        },
      },
    },
  })
  const [titleBlock] = title.content
  expect(titleBlock?.type === 'text' && JSON.parse(titleBlock.text)).toHaveProperty('title')

  // The first turn, counted before, as the agent does for its context display.
  const { max_tokens: _, metadata: __, ...counted } = loop('11111', [question])
  const count = await client.messages.countTokens(counted as never, { query: { beta: 'true' } } as never)
  const first = await ask('22222', [question])
  expect(sumOf(first.usage)).toBe(count.input_tokens)
  expect([first.usage.cache_read_input_tokens, first.model]).toEqual([0, main])
  expect(first.usage.cache_creation_input_tokens).toBeGreaterThan(300)

  // The loop: a call of a tool, its result, and the next turn, with the cache mark on the last block.
  const called = [
    { type: 'thinking', thinking: 'I read it.', signature: 'of-another-server' },
    { type: 'text', text: 'I read the file.' },
    { type: 'tool_use', id: 'toolu_01', name: 'Read', input: { file_path: '/app/index.ts' }, caller: null },
  ]
  const result = (text: string) => ({
    type: 'tool_result',
    tool_use_id: 'toolu_01',
    content: [{ type: 'text', text }],
    ...ephemeral,
  })
  const unmarked = { ...question, content: question.content.map(({ type, text }) => ({ type, text })) }
  const second = await ask('33333', [
    unmarked,
    { role: 'assistant', content: called },
    { role: 'user', content: [result('export const answer = 42')] },
  ])
  // The second turn reads what the first has read and written.
  expect(second.usage.cache_read_input_tokens).toBe(cachedBy(first))

  // A reminder of the agent among the messages, and the next question.
  const { cache_control: ___, ...plainResult } = result('export const answer = 42')
  const third = await ask('44444', [
    unmarked,
    { role: 'assistant', content: called },
    { role: 'user', content: [plainResult] },
    { role: 'system', content: 'The user has opened index.ts.' },
    { role: 'assistant', content: [{ type: 'text', text: 'It exports a number.' }] },
    { role: 'user', content: [{ type: 'text', text: 'Thanks.', ...ephemeral }] },
  ])
  expect(third.usage.cache_read_input_tokens).toBe(cachedBy(second))
  readTokens.push(cachedBy(first), cachedBy(second))

  // Telemetry, and the end of the session.
  const events = await post('/api/event_logging/batch', { events: [{ event_type: 'x', event_data: {} }] })
  expect([events.status, await events.text()]).toEqual([204, ''])
  expect(loggedErrors).toEqual([])
})

test('the bill names the model, and has the cached tokens of all turns', async () => {
  const rows = (await llm.usage.calls()).filter(({ tokens }) => tokens.cachedInput > 0)
  const cached = rows.map(({ tokens }) => tokens.cachedInput).sort((a, b) => a - b)

  expect(new Set(rows.map(({ model }) => model))).toEqual(new Set(['tiny:latest']))
  expect(cached).toHaveLength(readTokens.length)
  // The bill has tokens behind the last mark, too, whose state was reused.
  for (const [index, tokens] of readTokens.entries()) {
    expect(cached[index]).toBeGreaterThanOrEqual(tokens)
    expect(cached[index]).toBeLessThan(tokens + 20)
  }
})
