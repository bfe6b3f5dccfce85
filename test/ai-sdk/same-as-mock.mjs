/** Compares a model of the provider with the mock model of the SDK, which plays the same answer. */
import { createModelmount } from '@modelmount/ai-sdk'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { generateText, streamText, tool } from 'ai'
import * as mocks from 'ai/test'
import { z } from 'zod'

const MockLanguageModel = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3

/** Each answer for the mock, and as a script of the engine with the same number of tokens. */
const answers = {
  'a text': {
    script: ['Hello', ' there.'],
    content: [{ type: 'text', text: 'Hello there.' }],
    parts: [
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'Hello' },
      { type: 'text-delta', id: '0', delta: ' there.' },
      { type: 'text-end', id: '0' },
    ],
    finish: 'stop',
    tokens: { text: 2, reasoning: 0 },
  },
  'reasoning and a text': {
    script: [{ reasoning: 'Hm.' }, 'Four.'],
    content: [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Four.' },
    ],
    parts: [
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'Hm.' },
      { type: 'reasoning-end', id: '0' },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'Four.' },
      { type: 'text-end', id: '1' },
    ],
    finish: 'stop',
    tokens: { text: 1, reasoning: 1 },
  },
  'two tool calls': {
    script: [
      { call: 'get_time', id: 'call_a', arguments: ['{"city":', '"Paris"}'] },
      { call: 'get_time', id: 'call_b', arguments: ['{"city":"Rome"}'] },
    ],
    content: [
      { type: 'tool-call', toolCallId: 'call_a', toolName: 'get_time', input: '{"city":"Paris"}' },
      { type: 'tool-call', toolCallId: 'call_b', toolName: 'get_time', input: '{"city":"Rome"}' },
    ],
    parts: [
      { type: 'tool-input-start', id: 'call_a', toolName: 'get_time' },
      { type: 'tool-input-delta', id: 'call_a', delta: '{"city":' },
      { type: 'tool-input-delta', id: 'call_a', delta: '"Paris"}' },
      { type: 'tool-input-end', id: 'call_a' },
      { type: 'tool-call', toolCallId: 'call_a', toolName: 'get_time', input: '{"city":"Paris"}' },
      { type: 'tool-input-start', id: 'call_b', toolName: 'get_time' },
      { type: 'tool-input-delta', id: 'call_b', delta: '{"city":"Rome"}' },
      { type: 'tool-input-end', id: 'call_b' },
      { type: 'tool-call', toolCallId: 'call_b', toolName: 'get_time', input: '{"city":"Rome"}' },
    ],
    finish: 'tool-calls',
    tokens: { text: 3, reasoning: 0 },
  },
  'an unknown tool': {
    script: [{ call: 'get_luck', id: 'call_a', arguments: ['{}'] }],
    content: [{ type: 'tool-call', toolCallId: 'call_a', toolName: 'get_luck', input: '{}' }],
    parts: [
      { type: 'tool-input-start', id: 'call_a', toolName: 'get_luck' },
      { type: 'tool-input-delta', id: 'call_a', delta: '{}' },
      { type: 'tool-input-end', id: 'call_a' },
      { type: 'tool-call', toolCallId: 'call_a', toolName: 'get_luck', input: '{}' },
    ],
    finish: 'tool-calls',
    tokens: { text: 1, reasoning: 0 },
  },
}

function createMock({ content, parts, finish, tokens: { text, reasoning } }) {
  const finishReason = { unified: finish, raw: finish }
  const usage = {
    inputTokens: { total: 2, noCache: 2, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: text + reasoning, text, reasoning },
  }
  return new MockLanguageModel({
    doGenerate: async () => ({ content, finishReason, usage, warnings: [] }),
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: 'stream-start', warnings: [] })
          for (const part of parts) controller.enqueue(part)
          controller.enqueue({ type: 'finish', finishReason, usage })
          controller.close()
        },
      }),
    }),
  })
}

/** Removes what is different in each call and in each provider. */
const comparable = (value) =>
  JSON.parse(
    JSON.stringify(value, (key, value) => {
      if (['providerMetadata', 'response', 'request', 'raw', 'performance'].includes(key)) return undefined
      return value instanceof Error ? value.message : value
    }),
  )

async function observe(model) {
  const tools = {
    get_time: tool({
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `noon in ${city}`,
    }),
  }
  const settings = { model, prompt: 'Hi', tools }
  const { content, toolResults, finishReason, usage, response } = await generateText(settings)
  const { fullStream } = streamText(settings)
  const stream = []
  for await (const part of fullStream) stream.push(part)
  return comparable({ content, toolResults, finishReason, usage, messages: response.messages, stream })
}

/** Returns what an app sees of the mock and of the provider, for each answer. */
export const mockSituations = Object.fromEntries(
  Object.entries(answers).map(([name, answer]) => [
    `${name} is the same as with the mock model`,
    async () => {
      // The prompt counts two tokens: one for the message, and one for the tool.
      const llm = await createLlm({ engine: scriptedEngine(answer.script), models: [] })
      try {
        const ours = await observe(createModelmount(llm)('tiny'))
        return { ours, mock: await observe(createMock(answer)) }
      } finally {
        await llm.close()
      }
    },
  ]),
)
