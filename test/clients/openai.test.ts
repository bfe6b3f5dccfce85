/** OpenAI's own client with the built-in model. */
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const arrived: string[] = []
const llm = await createLlm({ models: emptyFolder(), local: { contextSize: 4096 } })
const app = express()
  .use((req, _res, next) => {
    arrived.push(`${req.method} ${req.path}`)
    next()
  })
  .use(llmRouter(llm))
const server = await listen(app)
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'anything' })
const hello = { role: 'user' as const, content: 'Hello' }
const story = { role: 'user' as const, content: 'Tell me a story.' }
/** Token id of the letter a in the vocabulary of the built-in model. */
const letterA = 112

// Loading the model can take long on a busy machine.
beforeAll(() => llm.chat('Hello', { maxTokens: 1 }), 60_000)

beforeEach(() => {
  arrived.length = 0
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

test('a chat completion has the content, the finish reason and a request id', async () => {
  const completion = await client.chat.completions.create({
    model: 'tiny',
    messages: [hello],
    temperature: 0,
  })

  expect(completion.choices[0]?.message.content).toBe('Hello! How can I help you?')
  expect(completion.choices[0]?.finish_reason).toBe('stop')
  expect(completion.model).toBe('tiny')
  expect(completion._request_id).toMatch(/^req_.+/)
})

test('the pieces of a streamed answer join to the non-streamed answer', async () => {
  const question = { model: 'tiny', messages: [story], temperature: 0, max_tokens: 100 }

  const whole = await client.chat.completions.create(question)
  const stream = await client.chat.completions.create({
    ...question,
    stream: true,
    stream_options: { include_usage: true },
  })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)

  const contents = chunks.map(({ choices }) => choices[0]?.delta.content ?? '')
  expect(contents.join('')).toBe(whole.choices[0]?.message.content)
  expect(contents.filter((text) => text !== '').length).toBeGreaterThan(10)
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('length')
  expect(chunks.at(-1)?.usage).toMatchObject({
    prompt_tokens: whole.usage?.prompt_tokens,
    completion_tokens: 100,
  })
})

test('the stream helper joins the answer', async () => {
  const stream = client.chat.completions.stream({ model: 'tiny', messages: [hello], temperature: 0 })

  expect(await stream.finalContent()).toBe('Hello! How can I help you?')
  expect((await stream.finalChatCompletion()).choices[0]?.finish_reason).toBe('stop')
})

test('reasoning is separate from the answer, and absent unless requested', async () => {
  const sum = {
    model: 'tiny',
    messages: [{ role: 'user' as const, content: 'What is 2 + 3?' }],
    temperature: 0,
  }

  const thinking = await client.chat.completions.create({ ...sum, reasoning_effort: 'low' })
  const plain = await client.chat.completions.create(sum)

  const message = thinking.choices[0]?.message as { content: string; reasoning_content?: string }
  expect(message.reasoning_content).toMatch(/\S/)
  expect(message.content).not.toContain('think>')
  expect(thinking.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
  expect(plain.choices[0]?.message).not.toHaveProperty('reasoning_content')
})

test('an aborted stream does not delay the next call', async () => {
  const leaving = new AbortController()
  const contents: string[] = []
  // The answer is the letter a until the context is full, which would take most of a minute.
  const stream = await client.chat.completions.create(
    { model: 'tiny', messages: [story], stream: true, logit_bias: { [letterA]: 100 } },
    { signal: leaving.signal },
  )
  for await (const { choices } of stream) {
    if (choices[0]?.delta.content) contents.push(choices[0].delta.content)
    if (contents.length === 2) leaving.abort()
  }

  const startedAt = performance.now()
  const next = await client.chat.completions.create({ model: 'tiny', messages: [hello], temperature: 0 })

  expect(contents.join('')).toMatch(/^a+$/)
  expect(next.choices[0]?.message.content).toBe('Hello! How can I help you?')
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test('a prompt that repeats or continues an earlier one reports the tokens that it reuses', async () => {
  const ask = async (content: string) => {
    const { usage } = await client.chat.completions.create({
      ...{ model: 'tiny', messages: [{ role: 'user', content }], max_tokens: 1, temperature: 0 },
    })
    return { prompt: usage?.prompt_tokens, cached: usage?.prompt_tokens_details?.cached_tokens }
  }
  const notes = Array.from({ length: 20 }, (_, line) => `Note ${line}: see box ${line * 7}.`).join('\n')

  const first = await ask(notes)
  const again = await ask(notes)
  const other = await ask(`${notes}\nWhere is the last box?`)

  expect(again.prompt).toBe(first.prompt)
  expect(again.cached).toBeGreaterThan(100)
  expect(other.cached).toBeGreaterThan(100)
  expect(other.cached).toBeLessThan(other.prompt ?? 0)
})

test('a prompt in several parts has as many tokens as the text that a line break joins', async () => {
  const ask = (content: OpenAI.ChatCompletionUserMessageParam['content']) =>
    client.chat.completions.create({ model: 'tiny', messages: [{ role: 'user', content }], max_tokens: 1 })

  const whole = await ask('Tell me a story.\nIt is about a fox.')
  const parts = await ask([
    { type: 'text', text: 'Tell me a story.' },
    { type: 'text', text: 'It is about a fox.' },
  ])

  expect(parts.usage?.prompt_tokens).toBe(whole.usage?.prompt_tokens)
})

test('an unknown model makes the client throw a NotFoundError without a retry', async () => {
  const error = await failure(client.chat.completions.create({ model: 'nope', messages: [hello] }))

  expect(error).toBeInstanceOf(OpenAI.NotFoundError)
  expect(error).toMatchObject({ status: 404, code: 'model_not_found', type: 'invalid_request_error' })
  expect(error.requestID).toMatch(/^req_.+/)
  expect(arrived).toEqual(['POST /v1/chat/completions'])
})

test('an invalid request makes the client throw a BadRequestError that names the field, without a retry', async () => {
  const error = await failure(
    client.chat.completions.create({ model: 'tiny', messages: [hello], temperature: 3 }),
  )

  expect(error).toBeInstanceOf(OpenAI.BadRequestError)
  expect(error).toMatchObject({ param: 'temperature', code: 'decimal_above_max_value' })
  expect(arrived).toEqual(['POST /v1/chat/completions'])
})

test('a prompt longer than the context makes the client throw a BadRequestError', async () => {
  const question = {
    model: 'tiny',
    messages: [{ role: 'user' as const, content: 'fox '.repeat(5_000) }],
  }

  const whole = await failure(client.chat.completions.create(question))
  const streamed = await failure(client.chat.completions.create({ ...question, stream: true }))

  for (const error of [whole, streamed]) {
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(error.code).toBe('context_length_exceeded')
    expect(error.message).toContain("This model's maximum context length is 4096 tokens.")
  }
  expect(arrived).toHaveLength(2)
})

test('models can be listed and retrieved', async () => {
  const listed: string[] = []
  for await (const { id } of client.models.list()) listed.push(id)
  const tiny = await client.models.retrieve('tiny')
  const tagged = await client.models.retrieve('tiny:latest')
  const unknown = await failure(client.models.retrieve('org/x:Q4'))

  expect(listed).toEqual(['tiny:latest'])
  expect(tiny).toMatchObject({ id: 'tiny', object: 'model' })
  expect(tagged.id).toBe('tiny:latest')
  expect(unknown).toBeInstanceOf(OpenAI.NotFoundError)
  expect(unknown.code).toBe('model_not_found')
  expect(unknown.message).toContain('org/x:Q4')
})

/** Resolves with the error of a call, which must be an `APIError`. */
async function failure(call: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(OpenAI.APIError)
  return error as InstanceType<typeof OpenAI.APIError>
}
