/** Tools, thinking and formats with Anthropic's own clients, with the built-in model or a scripted engine. */
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema'
import { createLlm } from '@modelmount/core'
import { toTemplateMessages } from '@modelmount/core/engine'
import { type Script, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import Anthropic0 from 'anthropic-sdk-0'
import express from 'express'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const llm = await createLlm({ models: emptyFolder(), local: { contextSize: 1_024 } })
const server = await listen(express().use(llmRouter(llm)))

// Loading the model can take long on a busy machine.
beforeAll(() => llm.chat('Hello', { maxTokens: 1 }), 60_000)

afterAll(async () => {
  await server.close()
  await llm.close()
})

const weather = {
  name: 'get_weather',
  description: 'Get the current weather for a city',
  input_schema: {
    type: 'object' as const,
    properties: { city: { type: 'string', description: 'The city' } },
    required: ['city'],
  },
}
const measured = '{"temperature": 21, "condition": "sunny"}'
const ask = { role: 'user' as const, content: 'What is the weather in Paris?' }
/** The types of the newest client lack `temperature`, but the client sends it. */
const likeliest = { temperature: 0 } as object
const question = { model: 'tiny', max_tokens: 100, tools: [weather], messages: [ask], ...likeliest }
const greeting = { model: 'any', max_tokens: 2_000, messages: [{ role: 'user' as const, content: 'Hi' }] }
const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }

const callOf = ({ content }: Anthropic.Message): Anthropic.ToolUseBlock => {
  const call = content.find((block) => block.type === 'tool_use')
  expect(call).toBeDefined()
  return call as Anthropic.ToolUseBlock
}
const answering = (message: Anthropic.Message, result: object): Anthropic.MessageParam[] => [
  ask,
  { role: 'assistant', content: message.content },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: callOf(message).id, ...result }] },
]

describe.each([
  ['1', Anthropic],
  ['0', Anthropic0 as unknown as typeof Anthropic],
])('Anthropic SDK version %s', (_version, Class) => {
  const client = new Class({ baseURL: server.url, apiKey: 'anything', maxRetries: 0 })

  async function scripted(script: Script) {
    const engine = scriptedEngine(script)
    const llm = await createLlm({ engine, models: emptyFolder() })
    const { url, close } = await listen(express().use(llmRouter(llm)))
    onTestFinished(async () => {
      await close()
      await llm.close()
    })
    return { engine, client: new Class({ baseURL: url, apiKey: 'anything', maxRetries: 0 }) }
  }

  test('the model calls a tool and uses its result in the answer', async () => {
    const message = await client.messages.create(question)
    const call = callOf(message)
    const answer = await client.messages.create({
      ...question,
      messages: answering(message, { content: measured }),
    })

    expect(message.stop_reason).toBe('tool_use')
    expect(call).toMatchObject({
      name: 'get_weather',
      input: { city: 'Paris' },
      id: expect.stringMatching(/^toolu_/),
    })
    expect(answer.stop_reason).toBe('end_turn')
    expect(answer.content).toMatchObject([{ type: 'text', text: expect.stringContaining('21') }])
  })

  test('a streamed tool call joins to the non-streamed call, and helper events have pieces of its arguments', async () => {
    const whole = await client.messages.create(question)
    const snapshots: unknown[] = []
    const blocks: string[] = []
    const stream = client.messages
      .stream(question)
      .on('inputJson', (_piece, snapshot) => snapshots.push(structuredClone(snapshot)))
      .on('contentBlock', ({ type }) => blocks.push(type))
    const streamed = await stream.finalMessage()

    expect(snapshots.length).toBeGreaterThan(1)
    expect(snapshots.at(-1)).toEqual({ city: 'Paris' })
    expect(blocks).toEqual(whole.content.map(({ type }) => type))
    expect(callOf(streamed)).toEqual({ ...callOf(whole), id: callOf(streamed).id })
    expect(streamed).toMatchObject({
      stop_reason: 'tool_use',
      usage: { output_tokens: whole.usage.output_tokens },
    })

    const messages = answering(streamed, { content: [{ type: 'text', text: measured }] })
    const answer = await client.messages.stream({ ...question, messages }).finalText()
    expect(answer).toContain('21')
  })

  test.each([false, true])(
    "the client's toolRunner() runs calls and results to the end (stream: %s)",
    async (stream) => {
      const cities: string[] = []
      const tool = betaTool({
        name: weather.name,
        description: weather.description,
        inputSchema: weather.input_schema as never,
        run: (input) => {
          cities.push((input as { city: string }).city)
          return measured
        },
      })

      const runner = client.beta.messages.toolRunner({
        ...question,
        tools: [tool],
        stream,
        max_iterations: 3,
      })
      const { content } = await runner.runUntilDone()

      expect(cities).toEqual(['Paris'])
      expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining('21') }])
    },
  )

  test('a tool call that is cut by the token limit causes no client error', async () => {
    const { usage } = await client.messages.create(question)
    const cut = { ...question, max_tokens: usage.output_tokens - 4 }

    const whole = await client.messages.create(cut)
    const streamed = await client.messages.stream(cut).finalMessage()

    expect(whole.content.some(({ type }) => type === 'tool_use')).toBe(false)
    expect([whole.stop_reason, streamed.stop_reason]).toEqual(['max_tokens', 'max_tokens'])
  })

  test('a forced tool is called without text, also in a stream', async () => {
    const now = { name: 'now', description: 'Says the time.', input_schema: { type: 'object' as const } }
    const tools = [weather, now]
    const messages = [{ role: 'user' as const, content: 'Hello' }]

    for (const [tool_choice, name] of [
      [
        { type: 'any' as const, disable_parallel_tool_use: true },
        expect.stringMatching(/^(now|get_weather)$/),
      ],
      [{ type: 'tool' as const, name: 'now' }, 'now'],
      [{ type: 'tool' as const, name: 'get_weather' }, 'get_weather'],
    ] as const) {
      const body = { ...question, tools, messages, tool_choice }
      const whole = await client.messages.create(body)
      const streamed = await client.messages.stream(body).finalMessage()

      for (const message of [whole, streamed]) {
        expect(message).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', name }] })
        if (callOf(message).name === 'get_weather')
          expect(callOf(message).input).toEqual({ city: expect.any(String) })
      }
    }
  })

  test('a format constrains the output, and an unsupported schema gets a 400 that names the keyword', async () => {
    const ask = (schema: Record<string, unknown>) =>
      client.messages.create({
        ...greeting,
        model: 'tiny',
        output_config: { format: { type: 'json_schema', schema } },
      })
    const mood = { type: 'object', properties: { mood: { enum: ['good', 'bad'] } }, required: ['mood'] }

    const { content } = await ask({ ...mood, additionalProperties: false })

    expect(content).toMatchObject([{ type: 'text' }])
    expect(JSON.parse((content[0] as Anthropic.TextBlock).text)).toEqual({
      mood: expect.stringMatching(/^(good|bad)$/),
    })
    await expect(ask({ ...mood, unevaluatedProperties: false })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('unevaluatedProperties'),
    })
  })

  test('countTokens() returns the input tokens of a call with tools, calls and results', async () => {
    const message = await client.messages.create(question)
    const messages = answering(message, { content: measured, is_error: true })
    const { max_tokens: _, ...prompt } = { ...question, messages }

    const { input_tokens } = await client.messages.countTokens(prompt)
    const { usage } = await client.messages.create({ ...question, messages, max_tokens: 1 })
    const bare = await client.messages.countTokens({ model: 'tiny', messages })
    const beta = await client.beta.messages.countTokens(prompt as Anthropic.Beta.MessageCountTokensParams)

    expect(input_tokens).toBe(usage.input_tokens)
    expect(beta.input_tokens).toBe(input_tokens)
    expect(bare.input_tokens).toBeLessThan(input_tokens)
  })

  test('a result without its call makes the client throw a BadRequestError that names the id', async () => {
    const messages: Anthropic.MessageParam[] = [
      ask,
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_lost' }] },
    ]

    await expect(client.messages.create({ ...question, messages })).rejects.toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      message: expect.stringContaining('toolu_lost'),
    })
  })

  test('thinking is streamed, signed, and accepted in later turns', async () => {
    const { engine, client } = await scripted([{ reasoning: 'Hm, ' }, { reasoning: 'a greeting.' }, 'Hello.'])
    const body = { ...greeting, thinking }
    const thoughts: string[] = []
    const signatures: string[] = []

    const { id: _, ...whole } = await client.messages.create(body)
    const stream = client.messages
      .stream(body)
      .on('thinking', (piece) => thoughts.push(piece))
      .on('signature', (signature) => signatures.push(signature))
    const { id: __, ...streamed } = await stream.finalMessage()
    const messages = [
      ...greeting.messages,
      { role: 'assistant' as const, content: whole.content },
      ...greeting.messages,
    ]
    await client.messages.create({ ...body, messages })

    expect(streamed).toMatchObject(whole)
    expect(thoughts).toEqual(['Hm, ', 'a greeting.'])
    expect(whole.content).toMatchObject([
      { type: 'thinking', thinking: 'Hm, a greeting.', signature: signatures[0] },
      { type: 'text', text: 'Hello.' },
    ])
    expect(engine.requests.at(-1)).toMatchObject({ reasoning: true })
    const [, handedBack] = toTemplateMessages(
      (engine.requests.at(-1) as (typeof engine.requests)[number]).input,
    )
    expect(handedBack?.content).toEqual([
      { type: 'reasoning', text: 'Hm, a greeting.' },
      { type: 'text', text: 'Hello.' },
    ])
  })

  test('a model with reasoning thinks on request, and accepts its thinking in later turns', async () => {
    const sum = { role: 'user' as const, content: 'What is 2 plus 3?' }
    const body = { model: 'tiny', max_tokens: 60, messages: [sum], ...likeliest }

    const without = await client.messages.create(body)
    const asked = { ...body, thinking: { type: 'enabled' as const, budget_tokens: 50 } }
    const thoughtful = await client.messages.create(asked)
    const streamed = await client.messages.stream(asked).finalMessage()
    const messages = [sum, { role: 'assistant' as const, content: streamed.content }, sum]
    const again = await client.messages.create({ ...body, messages })

    expect(without.content).toMatchObject([{ type: 'text', text: expect.stringContaining('5') }])
    expect(thoughtful.content).toMatchObject([
      { type: 'thinking', thinking: expect.stringMatching(/./), signature: expect.stringMatching(/./) },
      { type: 'text', text: expect.stringContaining('5') },
    ])
    expect(thoughtful.usage.output_tokens_details?.thinking_tokens).toBeGreaterThan(0)
    expect(streamed.content).toEqual(thoughtful.content)
    expect(again.content).toMatchObject([{ type: 'text', text: expect.stringContaining('5') }])
  })

  test('thinking, text and two calls are joined, each in its own block', async () => {
    const { client } = await scripted([
      { reasoning: 'Two of them.' },
      'I look.',
      { call: 'get_weather', arguments: ['{"ci', 'ty":', '"Paris"}'] },
      { call: 'get_weather', arguments: { city: 'Oslo' } },
    ])
    const body = { ...greeting, tools: [weather], thinking }

    const { id: _, ...whole } = await client.messages.create(body)
    const { id: __, ...streamed } = await client.messages.stream(body).finalMessage()

    expect(streamed).toMatchObject(whole)
    expect(whole.content).toMatchObject([
      { type: 'thinking' },
      { type: 'text' },
      { type: 'tool_use', input: { city: 'Paris' } },
      { type: 'tool_use', input: { city: 'Oslo' } },
    ])
    const ids = whole.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    expect(new Set(ids).size).toBe(2)
  })

  test('a call without arguments has an empty input, with and without streaming', async () => {
    const { client } = await scripted([{ call: 'now' }])
    const body = { ...greeting, tools: [{ name: 'now', input_schema: { type: 'object' as const } }] }

    const whole = await client.messages.create(body)
    const streamed = await client.messages.stream(body).finalMessage()

    for (const message of [whole, streamed]) expect(callOf(message).input).toEqual({})
  })

  test('an empty answer is a message without content, with and without streaming', async () => {
    const { client } = await scripted([])

    const whole = await client.messages.create(greeting)
    const streamed = await client.messages.stream(greeting).finalMessage()

    for (const message of [whole, streamed])
      expect(message).toMatchObject({ content: [], stop_reason: 'end_turn' })
  })

  test('the client parses an answer in a format', async () => {
    const { engine, client } = await scripted('{"city": "Oslo"}')
    const format = jsonSchemaOutputFormat({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    })

    const { parsed_output } = await client.messages.parse({ ...greeting, output_config: { format } })

    expect(parsed_output).toEqual({ city: 'Oslo' })
    expect(engine.requests[0]?.format).toEqual({ type: 'json-schema', schema: format.schema })
  })
})
