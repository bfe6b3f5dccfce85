/** Ollama's own client with the built-in model: tool calls, structured output, logprobs and embeddings. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { type ChatRequest, type ChatResponse, type Message, Ollama, type Tool, type ToolCall } from 'ollama'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { encoderModel } from '../support/models.ts'

const models = emptyFolder()
symlinkSync(encoderModel, join(models, 'bert.gguf'))
const llm = await createLlm({ models, local: { contextSize: 4096 } })
const server = await listen(express().use(llmRouter(llm)))
const client = new Ollama({ host: server.url })

// Loading the model can take long on a busy machine.
beforeAll(() => llm.load('tiny'), 60_000)

afterAll(async () => {
  await server.close()
  await llm.close()
})

const weather: Tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', description: 'The city' } },
      required: ['city'],
    },
  },
}
const question: Message = { role: 'user', content: 'What is the weather in Paris?' }
const asking = (...messages: Message[]) => ({
  model: 'tiny',
  messages: [question, ...messages],
  tools: [weather],
  options: { temperature: 0, num_predict: 80 },
})
const parisian = { function: { index: 0, name: 'get_weather', arguments: { city: 'Paris' } } }

/** Joins the parts of a streamed answer. */
async function streamed(request: ChatRequest): Promise<{ message: Message; last: ChatResponse | undefined }> {
  const message = { role: '', content: '', thinking: '', tool_calls: [] as ToolCall[] }
  let last: ChatResponse | undefined
  for await (const part of await client.chat({ ...request, stream: true })) {
    message.role = part.message.role
    message.content += part.message.content
    message.thinking += part.message.thinking ?? ''
    message.tool_calls.push(...(part.message.tool_calls ?? []))
    last = part
  }
  return { message, last }
}

test('the model calls a tool and uses its result in the answer', async () => {
  const { message, done_reason } = await client.chat(asking())
  const result: Message = { role: 'tool', content: 'sunny', tool_name: 'get_weather' }
  const answer = await client.chat(asking(message, result))

  expect(message.tool_calls).toMatchObject([parisian])
  expect(message.thinking).toContain('get_weather')
  expect(done_reason).toBe('stop')
  expect(answer.message.content).toContain('sunny')
  expect(answer.message.tool_calls).toBeUndefined()
})

test('a streamed tool call is the same as a non-streamed one', async () => {
  const { message, last } = await streamed(asking())
  const result: Message = { role: 'tool', content: 'sunny', tool_name: 'get_weather' }
  const answer = await streamed(asking(message, result))

  const whole = await client.chat(asking())
  const { id: _, ...call } = (whole.message.tool_calls?.[0] ?? {}) as ToolCall & { id?: string }
  expect(message.tool_calls).toMatchObject([call])
  expect([message.content, message.thinking]).toEqual([whole.message.content, whole.message.thinking])
  expect(last).toMatchObject({ done: true, done_reason: 'stop', eval_count: whole.eval_count })
  expect(answer.message.content).toContain('sunny')
})

test('a schema constrains the answer', async () => {
  const format = {
    type: 'object',
    properties: { mood: { enum: ['blue', 'green'] }, count: { type: 'integer', minimum: 3, maximum: 5 } },
    required: ['mood', 'count'],
  }
  const request = { model: 'tiny', think: false, options: { temperature: 0 }, format }

  const { message } = await client.chat({ ...request, messages: [{ role: 'user', content: 'Hello' }] })
  const { response } = await client.generate({ ...request, prompt: 'Hello' })

  for (const text of [message.content, response ?? ''])
    expect(JSON.parse(text)).toEqual({
      mood: expect.stringMatching(/^(blue|green)$/),
      count: expect.toSatisfy((count: number) => [3, 4, 5].includes(count)),
    })
})

test('the format `json` makes the answer a JSON object', async () => {
  const { message } = await client.chat({
    model: 'tiny',
    messages: [{ role: 'user', content: 'Hello' }],
    format: 'json',
    think: false,
    options: { temperature: 0, num_predict: 200 },
  })

  expect(JSON.parse(message.content)).toBeTypeOf('object')
})

test('the tokens of the logprobs join to the text of the answer', async () => {
  const { response, logprobs = [] } = await client.generate({
    model: 'tiny',
    prompt: 'Hello',
    think: false,
    logprobs: true,
    top_logprobs: 3,
    options: { temperature: 0, num_predict: 5 },
  })

  expect(logprobs).toHaveLength(5)
  expect(logprobs.map(({ token }) => token).join('')).toBe(response)
  for (const { logprob, top_logprobs = [] } of logprobs) {
    expect(top_logprobs).toHaveLength(3)
    expect(top_logprobs[0]?.logprob).toBe(logprob)
    expect(logprob).toBeLessThanOrEqual(0)
  }
})

test('embeddings equal those of Ollama, for one text and for several', async () => {
  const one = await client.embed({ model: 'bert', input: 'hello world' })
  const several = await client.embed({ model: 'bert', input: ['b', 'hello world'], truncate: false })
  const old = await client.embeddings({ model: 'bert', prompt: 'hello world' })

  const [vector = []] = one.embeddings
  expect(vector).toHaveLength(64)
  // Recorded from Ollama 0.33.0-rc2 with the same model file.
  for (const [index, value] of [0.0125118345, 0.11819228, -0.06518976, 0.05574724].entries())
    expect(vector[index]).toBeCloseTo(value, 3)
  expect(one.prompt_eval_count).toBe(4)
  expect(several.embeddings).toHaveLength(2)
  expect(cosine(several.embeddings[1] ?? [], vector)).toBeGreaterThan(0.9999)
  expect(cosine(old.embedding, vector)).toBeGreaterThan(0.9999)
})

test('a tool without a name makes the client throw a ResponseError', async () => {
  await expect(
    client.chat({ ...asking(), tools: [{ type: 'function', function: {} }] }),
  ).rejects.toMatchObject({
    name: 'ResponseError',
    status_code: 400,
    error: expect.stringMatching(/^invalid tools\[0\]\.function\.name: /),
  })
})

const cosine = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0)
