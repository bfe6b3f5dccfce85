/** An app whose model runs in another app with Modelmount, over Ollama's API. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Llm } from '@modelmount/core'
import { type CallEnded, subscribe } from '@modelmount/core/diagnostics'
import type { GenerateRequest } from '@modelmount/core/engine'
import { Ollama } from 'ollama'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { encoderModel, noiseModel } from '../support/models.ts'
import { startUpstreamApps, type UpstreamApps } from '../support/upstream-apps.ts'

let apps: UpstreamApps
let client: Ollama

beforeAll(async () => {
  const folder = emptyFolder()
  await copyFile(encoderModel, join(folder, 'bert.gguf'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  apps = await startUpstreamApps('ollama', folder)
  client = new Ollama({ host: apps.url })
})

afterAll(() => apps.close())

const chat = (text: string): GenerateRequest['input'] => ({
  ...{ kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
})
const ask = async (llm: Llm, input: GenerateRequest['input'], changes: Partial<GenerateRequest> = {}) =>
  collect(
    await llm.generate({
      ...{ model: 'tiny', input, maxTokens: 60, sampling: { temperature: 0 }, reasoning: false },
      ...changes,
    }),
  )
const question = chat('What is a GGUF file?')
const weather = {
  ...{ name: 'get_weather', description: 'Get the current weather for a city' },
  parameters: {
    ...{ type: 'object', required: ['city'] },
    properties: { city: { type: 'string', description: 'The city' } },
  },
} as const

test('an answer and its usage are those of the other app', async () => {
  const direct = await ask(apps.replica, question)
  const answer = await ask(apps.llm, question)

  expect(direct.text).not.toBe('')
  expect(answer.text).toBe(direct.text)
  expect(answer.finishReason).toBe(direct.finishReason)
  const { inputTokens, outputTokens } = direct.usage
  expect(answer.usage).toMatchObject({ inputTokens, outputTokens })
  expect(answer.usage.isEstimated).toBeUndefined()
})

test("Ollama's client streams a chat through both apps", async () => {
  const direct = await ask(apps.replica, question)
  const stream = await client.chat({
    ...{ model: 'tiny', messages: [{ role: 'user', content: 'What is a GGUF file?' }], stream: true },
    ...{ think: false, options: { temperature: 0, num_predict: 60 } },
  })
  let text = ''
  let count: number | undefined
  for await (const part of stream) {
    text += part.message.content
    count = part.eval_count ?? count
  }

  expect(text).toBe(direct.text)
  expect(count).toBe(direct.usage.outputTokens)
})

test("Ollama's client continues a text with the tokens of the answer before", async () => {
  const options = { temperature: 0, num_predict: 20 }
  const first = await client.generate({ model: 'tiny', prompt: 'Hello', options, think: false })
  const second = await client.generate({
    ...{ model: 'tiny', prompt: 'And you?', context: first.context, options, think: false },
  })

  expect(first.context.length).toBeGreaterThan(0)
  expect(second.prompt_eval_count).toBeGreaterThan(first.context.length)
})

test('a stop sequence and the limit end an answer as in the other app', async () => {
  const { text } = await ask(apps.replica, question)
  const stop = text.split(' ')[3] ?? ''
  const stopped = await ask(apps.llm, question, { stop: [stop] })

  expect(stopped).toMatchObject({ finishReason: 'stop', text: text.slice(0, text.indexOf(stop)) })
  expect(await ask(apps.llm, question, { maxTokens: 3 })).toMatchObject({
    ...{ finishReason: 'length', usage: { outputTokens: 3 } },
  })
})

test('a text without a template continues as in the other app', async () => {
  const input = { kind: 'text', prompt: ['GGUF is'], template: false } as const
  const changes = { maxTokens: 12, reasoning: undefined as never }

  expect((await ask(apps.llm, input, changes)).text).toBe((await ask(apps.replica, input, changes)).text)
})

test('a template of the request replaces that of the model', async () => {
  const input = { kind: 'text', prompt: ['Hello'], template: 'user: {{ .Prompt }}\nassistant:' } as const

  expect((await ask(apps.llm, input)).text).toBe((await ask(apps.replica, input)).text)
})

test('a seed makes an answer repeatable', async () => {
  const sampling = { temperature: 1, topP: 1, topK: 0, minP: 0, seed: 5 }
  const direct = await ask(apps.replica, question, { sampling })

  expect((await ask(apps.llm, question, { sampling })).text).toBe(direct.text)
})

test('the model calls a tool, and gets its result', async () => {
  const input = { ...chat('What is the weather in Paris?'), tools: [weather] } as const
  const direct = await ask(apps.replica, input)
  const answer = await ask(apps.llm, input)
  const [call] = answer.toolCalls ?? []

  expect(answer.finishReason).toBe('tool-calls')
  expect(answer.toolCalls?.map(({ name, arguments: json }) => [name, JSON.parse(json)])).toEqual(
    direct.toolCalls?.map(({ name, arguments: json }) => [name, JSON.parse(json)]),
  )

  const followUp = {
    ...input,
    messages: [
      ...(input as Extract<GenerateRequest['input'], { kind: 'chat' }>).messages,
      { role: 'assistant', content: [{ type: 'tool-call', id: '', name: '', arguments: '', ...call }] },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            id: call?.id ?? '',
            content: [{ type: 'text', text: '{"weather":"sunny"}' }],
          },
        ],
      },
    ],
  } as const
  expect((await ask(apps.llm, followUp)).text).toBe((await ask(apps.replica, followUp)).text)
})

test('an answer matches the JSON schema of the request', async () => {
  const schema = { type: 'object', properties: { age: { type: 'integer', maximum: 99 } }, required: ['age'] }
  const { text } = await ask(apps.llm, chat('How old are you?'), { format: { type: 'json-schema', schema } })

  expect(JSON.parse(text)).toEqual({ age: expect.any(Number) })
})

test('reasoning is separate from the text', async () => {
  const sum = chat('What is 2 plus 3?')
  const direct = await ask(apps.replica, sum, { reasoning: true })
  const answer = await ask(apps.llm, sum, { reasoning: true })

  expect(direct.reasoning).toBeDefined()
  expect(answer).toMatchObject({ text: direct.text, reasoning: direct.reasoning })
})

test('log probabilities are those of the other app', async () => {
  const changes = { maxTokens: 5, logprobs: 2 }
  const direct = await ask(apps.replica, question, changes)
  const answer = await ask(apps.llm, question, changes)
  const tokensOf = ({ logprobs = [] }: typeof answer) =>
    logprobs.map(({ text, top }) => [text, top.map((one) => one.text)])

  expect(tokensOf(direct)).toHaveLength(5)
  expect(tokensOf(answer)).toEqual(tokensOf(direct))
})

test('embeddings are those of the other app', async () => {
  const request = { model: 'bert', inputs: ['Hello', 'A fox ran.'], dimensions: 8 }
  const direct = await apps.replica.embed(request)
  const answer = await apps.llm.embed(request)

  expect(direct.embeddings[0]).toHaveLength(8)
  expect(answer.embeddings).toEqual(direct.embeddings)
  expect(answer.inputTokens).toBe(direct.inputTokens)
})

test('a client that leaves ends the call in the other app', async () => {
  // This model hardly ever ends an answer.
  const request = { model: 'noise', input: chat('Hello'), maxTokens: 900, reasoning: false }
  const leaving = new AbortController()
  const ended = new Promise<CallEnded>((resolve) => {
    onTestFinished(subscribe(apps.replica, { 'modelmount:call:end': resolve }))
  })
  for await (const event of await apps.llm.generate(request, { signal: leaving.signal }))
    if (event.type === 'text') leaving.abort()

  const { status, usage } = await ended
  expect(status).toBe('aborted')
  expect(usage?.outputTokens).toBeLessThan(900)
})

test('a prompt that is too long is truncated only if the request asks for it', async () => {
  const messages = ['word '.repeat(3_000), 'Hello'].map(
    (text) => ({ role: 'user', content: [{ type: 'text', text }] }) as const,
  )
  const input = { kind: 'chat', messages } as const

  await expect(ask(apps.llm, input)).rejects.toMatchObject({ code: 'context_length' })
  const { usage } = await ask(apps.llm, input, { overflow: 'truncate', maxTokens: 5 })
  expect(usage.inputTokens).toBeLessThan(1_024)
})

const tools = [{ type: 'function', function: weather }]
test.each([
  ['/v1/chat/completions', { logit_bias: { 5: 1 } }, { param: 'logit_bias', code: 'unsupported_parameter' }],
  ['/v1/chat/completions', { tools, parallel_tool_calls: false }, { param: 'parallel_tool_calls' }],
  [
    '/v1/messages',
    { max_tokens: 5, tools: [{ name: 'a', input_schema: { type: 'object' } }], tool_choice: { type: 'any' } },
    { message: expect.stringMatching(/^tool_choice: /) },
  ],
])('a field that the API lacks is an error in the API of the client: %s', async (path, fields, expected) => {
  const response = await fetch(`${apps.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], ...fields }),
  })

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: expected })
})

test('the list of models has those of the other app, with what they can do', async () => {
  const direct = await apps.replica.models.get('tiny')
  const details = await apps.replica.models.details(direct)
  const { name, digest, sizeBytes, modifiedAt } = direct

  const models = await apps.engine.listModels?.()

  expect(models?.find((model) => model.name === 'tiny:latest')).toMatchObject({
    ...{ name, digest, sizeBytes, modifiedAt },
    details: {
      contextSize: details.contextSize,
      quantization: details.quantization,
      capabilities: expect.arrayContaining(['completion', 'tools', 'thinking']),
    },
  })
})
