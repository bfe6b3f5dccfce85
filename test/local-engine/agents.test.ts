/** An agent sends a long system prompt, tools, and a conversation that grows by tool calls and results. */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

/** Tokens per prompt chunk, on a CPU with fast flash attention. */
const chunkSize = 64

let llm: Llm
let server: Listening
const logged: { readonly details: object; readonly message: string }[] = []

beforeAll(async () => {
  llm = await createLlm({
    models: emptyFolder(),
    local: { contextSize: 8_192, parallel: 2 },
    logger: {
      debug: (details, message) => logged.push({ details, message }),
      warn: () => {},
      error: () => {},
    },
  })
  server = await listen(toNodeHandler(routesFor(), llm))
})
afterAll(async () => {
  await server.close()
  await llm.close()
})

const client = () => new Anthropic({ baseURL: server.url, apiKey: 'none' })
const cache_control = { type: 'ephemeral' } as const
const words = 'time people house water light green seven paper'.split(' ')
const text = (length: number): string =>
  Array.from({ length }, (_, index) => words[(index * 5 + (index >> 3)) % words.length]).join(' ')

const tools: Anthropic.Tool[] = ['get_weather', 'read_file', 'list_files'].map((name) => ({
  name,
  description: `${name}: ${text(20)}`,
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string', description: 'The city' } },
    required: ['city'],
  },
}))

/** The first block is a billing header, which differs in each turn. */
const systemOf = (turn: number, more = ''): Anthropic.TextBlockParam[] => [
  { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.0; cch=${turn * 7919};` },
  { type: 'text', text: `You are a helpful assistant. ${text(250)}${more}`, cache_control },
]

/** Adds a breakpoint to the last block of the last message. */
function marked(messages: readonly Anthropic.MessageParam[]): Anthropic.MessageParam[] {
  const last = messages.at(-1)
  const blocks = last?.content as Anthropic.ToolResultBlockParam[]
  const content = blocks.map((block, at) => (at < blocks.length - 1 ? block : { ...block, cache_control }))
  return [...messages.slice(0, -1), { role: 'user', content }]
}

test('in twenty turns of an agent, only new tokens are evaluated although the billing header changes', async () => {
  const anthropic = client()
  const messages: Anthropic.MessageParam[] = []
  let before = 0
  let read = 0
  for (let turn = 0; turn < 20; turn++) {
    const id = `toolu_${turn}`
    if (turn > 0)
      messages.push(
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id, name: 'read_file', input: { city: words[turn % 8] } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text(20 + turn) }] },
      )
    else messages.push({ role: 'user', content: [{ type: 'text', text: 'What is the weather in Paris?' }] })

    const call = anthropic.messages.create({
      model: 'tiny',
      max_tokens: 12,
      system: systemOf(turn),
      tools,
      messages: marked(messages),
    })
    const { data, response } = await call.withResponse()

    const { usage } = data
    const reused = Number(response.headers.get('x-prompt-tokens-reused'))
    const cached = usage.cache_read_input_tokens ?? 0
    const total = usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0)
    if (turn > 0) {
      const evaluated = total - reused
      expect(evaluated, `turn ${turn}`).toBeLessThan(1.2 * (total - before) + chunkSize)
      expect(cached).toBeGreaterThan(read)
      expect(reused).toBeGreaterThanOrEqual(cached)
    }
    before = total
    read = cached
  }
  expect(before).toBeGreaterThan(1_500)
})

test('the logger of the app gets the number of shared prompt tokens at debug level, without any text', async () => {
  const anthropic = client()
  const ask = (more: string): Promise<Anthropic.Message> =>
    anthropic.messages.create({
      model: 'tiny',
      max_tokens: 2,
      system: systemOf(0, `${more} ${text(30)}`),
      messages: [{ role: 'user', content: 'Hello.' }],
    })
  await ask(' The time is noon.')
  logged.length = 0

  const { usage } = await ask(' The time is seven.')

  const inputTokens = usage.input_tokens + (usage.cache_creation_input_tokens ?? 0)
  expect(logged.map(({ details }) => details)).toEqual([
    {
      ...{ requestId: expect.any(String), model: 'tiny', inputTokens },
      ...{ reusedTokens: expect.any(Number), sharedTokens: expect.any(Number) },
    },
  ])
  // Most of the text comes before the time, which differs.
  const { sharedTokens } = (logged[0] as { details: object }).details as { sharedTokens: number }
  expect(sharedTokens).toBeGreaterThan(inputTokens / 2)
  expect(sharedTokens).toBeLessThan(inputTokens)
  expect(usage.cache_read_input_tokens).toBe(0)
})
