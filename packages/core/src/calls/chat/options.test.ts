import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createLlm } from '../../create-llm.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'
import { ChatStream } from './chat-stream.ts'
import type { ChatResult } from './result.ts'

const engine = scriptedEngine('Hello.')
const llm = await createLlm({ engine, models: [] })

test.each<[unknown, string]>([
  [{ max_tokens: 5 }, 'max_tokens: unknown option of chat(). Did you mean maxTokens?'],
  [{ format: 'json' }, 'format: unknown option of chat(). Did you mean schema?'],
  [{ messages: [] }, 'messages: unknown option of chat(). Did you mean llm.chat(messages, options)?'],
  [{ temprature: 1 }, 'temprature: unknown option of chat(). Did you mean temperature?'],
  [{ constructor: 1 }, 'constructor: unknown option of chat().'],
  [{ somethingElse: 1 }, 'somethingElse: unknown option of chat().'],
  [null, 'options: expected an object, got null.'],
  ['tiny', "options: expected an object, got 'tiny'."],
  [{ model: 5 }, 'model: expected a string, got 5.'],
  [{ system: ['Be brief.'] }, 'system: expected a string, got a list.'],
  [{ stream: 'yes' }, "stream: expected true or false, got 'yes'."],
  [{ reasoning: 'high' }, "reasoning: expected true, false or 'auto', got 'high'."],
  [{ stop: '\n' }, "stop: expected a list of strings, got '\n'."],
  [{ maxTokens: 1.5 }, 'maxTokens: expected an integer from 0 up, got 1.5.'],
  [{ maxSteps: 0 }, 'maxSteps: expected an integer from 1 to 1000, got 0.'],
  [{ onStep: 'log' }, "onStep: expected a function, got 'log'."],
  [{ signal: {} }, 'signal: expected an AbortSignal, got an object.'],
  [
    { tools: [] },
    'tools: expected an object, such as { weather: { description, parameters, execute } }, got a list.',
  ],
  [
    { tools: { now: 'now' } },
    "tools.now: expected a tool, such as { description, parameters, execute }, got 'now'.",
  ],
  [
    { tools: { now: { inputSchema: {} } } },
    'tools.now.inputSchema: unknown field of a tool. Did you mean parameters?',
  ],
  [{ tools: { now: { execute: 5 } } }, 'tools.now.execute: expected a function, got 5.'],
  [
    { tools: { now: { parameters: true } } },
    'tools.now.parameters: expected the schema of an object, got true.',
  ],
  [
    { tools: { now: { parameters: z.string() } } },
    "tools.now.parameters: expected the schema of an object, got 'string'.",
  ],
  [{ toolChoice: 'required' }, "toolChoice: 'required' needs the option tools."],
  [{ toolChoice: 'any' }, "toolChoice: expected 'auto', 'none', 'required' or { tool: name }, got 'any'."],
  [{ toolChoice: { tool: 'now' } }, "toolChoice.tool: expected the name of one of the tools, got 'now'."],
])('the options %j are rejected, with what to write', async (options, message) => {
  const answer = llm.chat('Hi', options as object)

  await expect(answer).rejects.toMatchObject({ name: 'LlmError', code: 'invalid_request', message })
  await expect(answer).rejects.toMatchObject({ details: { param: message.slice(0, message.indexOf(':')) } })
})

test('a wrong option is a mistake of the app, and a wrong message may be one of its client', async () => {
  const option = llm.chat('Hi', { maxTokens: 1.5 })
  const message = llm.chat([{ role: 'bot', content: 'Hi' }] as never)

  await expect(option).rejects.toMatchObject({
    ...{ code: 'invalid_request', status: 500, statusCode: 500, expose: false },
    details: { setup: true },
  })
  await expect(message).rejects.toMatchObject({ code: 'invalid_request', status: 400, expose: true })
})

const call = { id: 'a', name: 'now', arguments: {} }

test.each<[unknown, string]>([
  [5, 'input: expected a string or a list of messages, got 5.'],
  [undefined, 'input: expected a string or a list of messages, got nothing.'],
  [[], 'input: expected at least one message.'],
  [['Hi'], "input[0]: expected a message, such as { role, content }, got 'Hi'."],
  [
    [{ role: 'bot', content: 'Hi' }],
    "input[0].role: expected 'system', 'user', 'assistant' or 'tool', got 'bot'.",
  ],
  [[{ role: 'user' }], 'input[0].content: expected a string, got nothing.'],
  [[{ role: 'user', content: [{ type: 'text' }] }], 'input[0].content: expected a string, got a list.'],
  [[{ role: 'user', content: 'Hi', name: 'Ada' }], 'input[0].name: unknown field.'],
  [[{ role: 'assistant', tool_calls: [] }], 'input[0].tool_calls: unknown field. Did you mean toolCalls?'],
  [
    [{ role: 'assistant', toolCalls: [{ ...call, arguments: '{}' }] }],
    "input[0].toolCalls[0].arguments: expected an object, got '{}'.",
  ],
  [
    [{ role: 'assistant', toolCalls: [{ name: 'now' }] }],
    'input[0].toolCalls[0].id: expected a string, got nothing.',
  ],
  [
    [{ role: 'tool', toolCallId: 'a', content: '' }],
    'input[0].toolCallId: the assistant message before has no open call with this id.',
  ],
  [
    [
      { role: 'assistant', toolCalls: [call] },
      { role: 'user', content: 'Hi' },
    ],
    "input[1]: expected a message { role: 'tool', toolCallId: 'a', content } for each tool call.",
  ],
])('the conversation %j is rejected, with the field', async (messages, message) => {
  const answer = llm.chat(messages as string)

  await expect(answer).rejects.toMatchObject({ name: 'LlmError', code: 'invalid_request', message })
})

test('a stream with invalid options fails at its first pull, and no engine is called', async () => {
  const before = engine.requests.length
  const stream = llm.chat('Hi', { stream: true, maxTokens: -1 })

  await expect(stream.next()).rejects.toMatchObject({ code: 'invalid_request' })
  expect(engine.requests).toHaveLength(before)
})

test('undefined options have their defaults', async () => {
  const { text } = await llm.chat('Hi', {
    maxTokens: undefined,
    tools: undefined,
    schema: undefined,
    signal: undefined,
  })

  expect(text).toBe('Hello.')
  expect(engine.requests.at(-1)).toEqual({
    model: 'tiny:latest',
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    sampling: {},
    reasoning: 'auto',
  })
})

test('`reasoning` reaches the engine, and the result has the reasoning', async () => {
  const thinking = scriptedEngine([{ reasoning: 'Hm.' }, 'Hello.'])
  const llm = await createLlm({ engine: thinking, models: [] })

  const answer = await llm.chat('Hi', { reasoning: true })

  expect(thinking.requests[0]?.reasoning).toBe(true)
  expect(answer).toMatchObject({ text: 'Hello.', reasoning: 'Hm.', reasoningTokens: 1 })
  expect(answer.messages).toEqual([{ role: 'assistant', content: 'Hello.', reasoning: 'Hm.' }])
})

const names = [
  'model',
  'system',
  'stop',
  'tools',
  'toolChoice',
  'schema',
  'signal',
  'stream',
  'maxSteps',
  'caller',
  'seed',
]
const anyOptions = fc.oneof(fc.anything(), fc.dictionary(fc.constantFrom(...names), fc.anything()))

test('whatever the app passes, a call answers or rejects with an LlmError', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.anything(), fc.constant('Hi')), anyOptions, async (input, options) => {
      const answer: unknown = llm.chat(input as string, options as object)
      const result = answer instanceof ChatStream ? answer.result : answer
      const outcome = await (result as Promise<ChatResult>).then(
        ({ text }) => text,
        ({ name }) => name,
      )

      expect(['Hello.', 'LlmError']).toContain(outcome)
    }),
    { numRuns: 500 },
  )
})
