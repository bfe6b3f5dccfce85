/** OpenAI's own client with the Responses API: streams, tool calls, structured output and failures. */
import { createLlm, LlmError } from '@modelmount/core'
import { type GenerateRequest, toTemplateMessages } from '@modelmount/core/engine'
import { type ScriptedAnswer, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import OpenAI from 'openai'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

const City = z.object({ city: z.string() })
const question = { model: 'tiny', input: 'Is it raining in Paris?' }

describe('the Responses API with a scripted engine', () => {
  let say: (request: GenerateRequest) => ScriptedAnswer
  const engine = scriptedEngine((request) => say(request))
  let server: Listening
  let client: OpenAI
  let close: () => Promise<void>

  beforeAll(async () => {
    const llm = await createLlm({ engine, models: emptyFolder() })
    server = await listen(express().use(llmRouter(llm)))
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'anything', maxRetries: 0 })
    close = () => llm.close()
  })

  beforeEach(() => {
    say = () => 'Hello there.'
  })

  afterAll(async () => {
    await server.close()
    await close()
  })

  const tools = [zodResponsesFunction({ name: 'weather', parameters: City })]

  test('`output_text` is the text of a response', async () => {
    const response = await client.responses.create(question)

    expect(response.output_text).toBe('Hello there.')
    expect(response._request_id).toMatch(/^req_.+/)
  })

  test('the stream helper joins reasoning, text and tool calls', async () => {
    say = () => [
      { reasoning: 'Hm' },
      { reasoning: '.' },
      'I ',
      'look.',
      { call: 'weather', id: 'call_a', arguments: ['{"city":', '"Paris"}'] },
    ]
    const deltas: string[] = []

    const stream = client.responses.stream({ ...question, tools, reasoning: { summary: 'auto' } })
    stream.on('response.output_text.delta', ({ delta, snapshot }) => deltas.push(delta, snapshot))
    stream.on('response.function_call_arguments.delta', ({ snapshot }) => deltas.push(snapshot))
    const { output, output_text, status } = await stream.finalResponse()

    expect(status).toBe('completed')
    expect(output_text).toBe('I look.')
    expect(output).toMatchObject([
      { type: 'reasoning', content: [{ text: 'Hm.' }], summary: [{ text: 'Hm.' }] },
      { type: 'message', content: [{ text: 'I look.' }] },
      { type: 'function_call', call_id: 'call_a', parsed_arguments: { city: 'Paris' } },
    ])
    expect(deltas).toEqual(['I ', 'I ', 'look.', 'I look.', '{"city":', '{"city":"Paris"}'])
  })

  test('the stream helper joins the text of a custom tool, and a function of a namespace has its name', async () => {
    say = () => [
      { call: 'apply_patch', id: 'call_a', arguments: ['{"input":"*** Begin', ' Patch\\n"}'] },
      { call: 'mcp__files__read', id: 'call_b', arguments: { path: 'a' } },
    ]
    const tool = zodResponsesFunction({ name: 'read', parameters: z.object({ path: z.string() }) })

    const stream = client.responses.stream({
      ...question,
      tools: [
        { type: 'custom', name: 'apply_patch' },
        {
          type: 'namespace',
          name: 'mcp__files',
          description: 'Files.',
          tools: [{ ...tool, type: 'function' }],
        },
      ],
    })
    const { output } = await stream.finalResponse()

    expect(output).toMatchObject([
      { type: 'custom_tool_call', call_id: 'call_a', name: 'apply_patch', input: '*** Begin Patch\n' },
      { type: 'function_call', call_id: 'call_b', name: 'read', namespace: 'mcp__files' },
    ])
  })

  test('the output of a response is accepted as input, with the result of its tool call', async () => {
    say = ({ input }) => {
      const [result] = toTemplateMessages(input).at(-1)?.content ?? []
      return result?.type === 'tool-result'
        ? 'It rains.'
        : [{ reasoning: 'Hm.' }, { call: 'weather', id: 'call_a', arguments: { city: 'Paris' } }]
    }
    const include = ['reasoning.encrypted_content' as const]

    const { output } = await client.responses.create({ ...question, tools, include })
    const next = await client.responses.create({
      ...question,
      tools,
      input: [
        { role: 'user', content: question.input },
        ...(output as OpenAI.Responses.ResponseInputItem[]),
        { type: 'function_call_output', call_id: 'call_a', output: 'rain' },
      ],
    })

    expect(next.output_text).toBe('It rains.')
    expect(toTemplateMessages((engine.requests.at(-1) as GenerateRequest).input)).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.' },
          { type: 'tool-call', id: 'call_a' },
        ],
      },
      { role: 'tool', content: [{ type: 'tool-result', content: [{ text: 'rain' }] }] },
    ])
  })

  test('parse() returns the object of a text format, and the schema reaches the engine', async () => {
    say = () => '{"city":"Paris"}'

    const response = await client.responses.parse({
      ...question,
      text: { format: zodTextFormat(City, 'place') },
    })

    expect(response.output_parsed).toEqual({ city: 'Paris' })
    expect(engine.requests.at(-1)?.format).toMatchObject({
      type: 'json-schema',
      schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    })
  })

  test('a failed stream ends with the event `response.failed`', async () => {
    say = () => ['Hel', new LlmError('upstream', 'The engine is gone.')]

    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of await client.responses.create({ ...question, stream: true })) events.push(event)

    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error', message: 'The engine is gone.' } },
    })
  })

  test('a response is continued, retrieved, listed and deleted', async () => {
    const first = await client.responses.create({ ...question, instructions: 'Be brief.' })
    const stream = client.responses.stream({
      ...question,
      input: 'And in Rome?',
      previous_response_id: first.id,
    })
    const second = await stream.finalResponse()

    const roles = toTemplateMessages((engine.requests.at(-1) as GenerateRequest).input).map(
      ({ role }) => role,
    )
    expect(roles).toEqual(['user', 'assistant', 'user'])
    expect(await client.responses.retrieve(first.id)).toMatchObject({
      ...{ id: first.id, output_text: 'Hello there.', instructions: 'Be brief.' },
    })
    expect(await client.responses.retrieve(second.id)).toMatchObject({ previous_response_id: first.id })
    const items = []
    for await (const item of client.responses.inputItems.list(second.id, { limit: 1 })) items.push(item)
    expect(items).toMatchObject([
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And in Rome?' }] },
      { type: 'message', role: 'assistant' },
      { type: 'message', role: 'user', content: [{ text: question.input }] },
    ])

    await expect(client.responses.cancel(first.id)).rejects.toBeInstanceOf(OpenAI.BadRequestError)
    await client.responses.delete(first.id)
    await expect(client.responses.retrieve(first.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expect(client.responses.delete(first.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    for (const previous_response_id of [first.id, second.id])
      await expect(client.responses.create({ ...question, previous_response_id })).rejects.toMatchObject({
        status: 400,
        code: 'previous_response_not_found',
      })
    await expect(client.responses.compact({ model: 'tiny' })).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })

  test('a conversation is created, continued by responses, changed and deleted', async () => {
    const { conversations } = client
    const { id } = await conversations.create({
      items: [{ role: 'user', content: 'I am in Paris.' }],
      metadata: { topic: 'rain' },
    })
    const response = await client.responses.create({ ...question, conversation: id })
    await conversations.items.create(id, { items: [{ role: 'user', content: 'Thanks.' }] })

    const items = []
    for await (const item of conversations.items.list(id, { order: 'asc', limit: 2 })) items.push(item)
    const [first] = items as [OpenAI.Conversations.Message]
    expect(response.conversation).toEqual({ id })
    expect(items).toMatchObject([
      { role: 'user', content: [{ text: 'I am in Paris.' }] },
      { role: 'user', content: [{ text: question.input }] },
      { role: 'assistant', id: response.output[0]?.id },
      { role: 'user', content: [{ text: 'Thanks.' }] },
    ])
    expect(await conversations.items.retrieve(first.id, { conversation_id: id })).toEqual(first)
    expect(await conversations.items.delete(first.id, { conversation_id: id })).toMatchObject({ id })
    expect(await conversations.update(id, { metadata: { topic: 'sun' } })).toMatchObject({
      metadata: { topic: 'sun' },
    })
    expect(await conversations.retrieve(id)).toMatchObject({
      object: 'conversation',
      metadata: { topic: 'sun' },
    })
    expect(await conversations.delete(id)).toMatchObject({ id, deleted: true })
    await expect(conversations.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })

  test('inputTokens.count() returns the input tokens of the same call', async () => {
    const { input_tokens } = await client.responses.inputTokens.count(question)
    const { usage } = await client.responses.create(question)

    expect(input_tokens).toBe(usage?.input_tokens)
  })
})

describe('the Responses API with the built-in model', () => {
  const models = emptyFolder()
  let server: Listening
  let client: OpenAI
  let close: () => Promise<void>

  // Loading the model can take long on a busy machine.
  beforeAll(async () => {
    const llm = await createLlm({ models, local: { contextSize: 4096 } })
    await llm.load('tiny')
    server = await listen(express().use(llmRouter(llm)))
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'anything', maxRetries: 0 })
    close = () => llm.close()
  }, 60_000)

  afterAll(async () => {
    await server?.close()
    await close?.()
  })

  test('the pieces of a streamed response join to the non-streamed response', async () => {
    const hello = { model: 'tiny', input: 'Hello', temperature: 0 }
    const pieces: string[] = []

    const whole = await client.responses.create(hello)
    const stream = client.responses.stream(hello)
    stream.on('response.output_text.delta', ({ delta }) => pieces.push(delta))
    const streamed = await stream.finalResponse()

    expect(whole.output_text).toBe('Hello! How can I help you?')
    expect(pieces.join('')).toBe(whole.output_text)
    expect(streamed.output_text).toBe(whole.output_text)
    expect(streamed.usage).toMatchObject({ total_tokens: whole.usage?.total_tokens })
  })

  test('reasoning is separate from the text, and its tokens are counted', async () => {
    const response = await client.responses.create({
      model: 'tiny',
      input: 'What is 2 + 3?',
      temperature: 0,
      reasoning: { effort: 'low', summary: 'auto' },
    })

    expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
    expect(response.output_text).not.toContain('think>')
    expect(response.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(0)
  })

  test('a required tool call and a text format match their schemas', async () => {
    const tool = {
      type: 'function' as const,
      name: 'weather',
      strict: true,
      parameters: z.toJSONSchema(City),
    }

    const called = await client.responses.create({ ...question, tools: [tool], tool_choice: 'required' })
    const parsed = await client.responses.parse({
      ...question,
      text: { format: zodTextFormat(z.object({ rains: z.boolean() }), 'weather') },
    })

    expect(called.output).toMatchObject([{ type: 'function_call', name: 'weather', status: 'completed' }])
    const [{ arguments: json }] = called.output as [OpenAI.Responses.ResponseFunctionToolCall]
    expect(City.parse(JSON.parse(json))).toBeDefined()
    expect(typeof parsed.output_parsed?.rains).toBe('boolean')
  })

  test('a too long prompt throws a BadRequestError, and is answered with `truncation: auto`', async () => {
    const long = { model: 'tiny', input: 'fox '.repeat(5_000), max_output_tokens: 2 }
    const turns = Array.from({ length: 50 }, () => [
      { role: 'user' as const, content: 'fox '.repeat(100) },
      { role: 'assistant' as const, content: 'dog '.repeat(100) },
    ]).flat()

    const tooLong = { code: 'context_length_exceeded', status: 400 }
    await expect(client.responses.create(long)).rejects.toMatchObject(tooLong)
    const cut = await client.responses.create({
      ...long,
      input: [...turns, { role: 'user', content: 'Hello' }],
      truncation: 'auto',
    })

    expect(cut.usage?.input_tokens).toBeLessThan(4096)
  })
})
