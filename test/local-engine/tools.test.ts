/** Tool calls of the built-in model, which was trained for this tool. */
import { createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import type { GenerateEvent, Message, Tool } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 1_024 } })
})

afterAll(() => llm.close())

const call = { signal: new AbortController().signal }
const weather: Tool = {
  name: 'get_weather',
  description: 'Get the current weather for a city',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string', description: 'The city' } },
    required: ['city'],
  },
}
const question: Message = { role: 'user', content: [{ type: 'text', text: 'What is the weather in Paris?' }] }

async function events(input: object, maxTokens = 100): Promise<GenerateEvent[]> {
  const request = {
    model: 'tiny',
    input: { kind: 'chat', messages: [question], tools: [weather], ...input } as const,
  }
  const all: GenerateEvent[] = []
  const generation = await llm.generate({ ...request, maxTokens, sampling: { temperature: 0 } }, call)
  for await (const event of generation) all.push(event)
  return all
}

function answerOf(all: readonly GenerateEvent[]): Partial<GenerateResult> & { readonly json: string } {
  let json = ''
  let text = ''
  for (const event of all) {
    if (event.type === 'tool-arguments') json += event.json
    if (event.type === 'text') text += event.text
  }
  const end = all.at(-1)
  return { ...(end?.type === 'end' && { ...end }), json, text }
}

test('a tool call streams its arguments in parts, and its tokens are counted', async () => {
  const all = await events({})

  const { json, text, finishReason, usage } = answerOf(all)
  expect(all.filter(({ type }) => type === 'tool-call')).toMatchObject([{ index: 0, name: 'get_weather' }])
  expect(all.filter(({ type }) => type === 'tool-arguments').length).toBeGreaterThan(1)
  expect(JSON.parse(json)).toEqual({ city: 'Paris' })
  expect(text).toBe('')
  expect(finishReason).toBe('tool-calls')
  const counted = all.reduce(
    (sum, event) => sum + ('tokens' in event && typeof event.tokens === 'number' ? event.tokens : 0),
    0,
  )
  expect(counted).toBeLessThanOrEqual(usage?.outputTokens ?? 0)
})

test('the result of a tool call is used in the answer', async () => {
  const [, asked] = await events({})
  const id = asked?.type === 'tool-call' ? asked.id : ''
  const messages: Message[] = [
    question,
    {
      role: 'assistant',
      content: [{ type: 'tool-call', id, name: 'get_weather', arguments: '{"city": "Paris"}' }],
    },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          id,
          content: [{ type: 'text', text: '{"temperature": 21, "condition": "sunny"}' }],
        },
      ],
    },
  ]

  const { text, finishReason } = answerOf(await events({ messages }))

  expect(id).toMatch(/^call_[0-9a-f]{24}$/)
  expect(text).toContain('21')
  expect(finishReason).toBe('stop')
})

test('a tool call that ends at the token limit is reported as incomplete', async () => {
  const whole = answerOf(await events({}))
  const limit = (whole.usage?.outputTokens ?? 0) - 4

  const { finishReason, incompleteCalls, json } = answerOf(await events({}, limit)) as ReturnType<
    typeof answerOf
  > & {
    incompleteCalls?: readonly number[]
  }

  expect(finishReason).toBe('length')
  expect(incompleteCalls).toEqual([0])
  expect(whole.json.startsWith(json)).toBe(true)
  expect(json).not.toBe(whole.json)
})

test('with toolChoice none, no tool is called', async () => {
  const all = await events({ toolChoice: { mode: 'none' } })

  expect(all.some(({ type }) => type === 'tool-call')).toBe(false)
})

test.each([
  ['tools[0].name', { tools: [{ name: '', parameters: {} }] }],
  ['tools[0].parameters', { tools: [{ name: 'a', parameters: 'none' }] }],
  ['toolChoice.mode', { toolChoice: { mode: 'required', names: [] } }],
])('an invalid %s is rejected with invalid_request', async (param, input) => {
  await expect(events(input)).rejects.toMatchObject({ code: 'invalid_request', details: { param } })
})
