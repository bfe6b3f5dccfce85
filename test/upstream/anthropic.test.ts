/** An app whose model runs in another app with Modelmount, over Anthropic's API. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import type { Llm } from '@modelmount/core'
import { type CallEnded, subscribe } from '@modelmount/core/diagnostics'
import type { GenerateRequest } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import { startUpstreamApps, type UpstreamApps } from '../support/upstream-apps.ts'

let apps: UpstreamApps
let client: Anthropic

beforeAll(async () => {
  const folder = emptyFolder()
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  apps = await startUpstreamApps('anthropic', folder)
  client = new Anthropic({ baseURL: apps.url, apiKey: 'none', maxRetries: 0 })
})

afterAll(() => apps.close())

const chat = (text: string): GenerateRequest['input'] => ({
  ...{ kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
})
const ask = async (llm: Llm, input: GenerateRequest['input'], changes: Partial<GenerateRequest> = {}) =>
  collect(
    await llm.generate({
      ...{ model: 'tiny', input, maxTokens: 60, sampling: { temperature: 0, topP: 1 }, reasoning: false },
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

test("Anthropic's client streams a chat through both apps, and counts its tokens", async () => {
  const direct = await ask(apps.replica, question)
  const messages = [{ role: 'user', content: 'What is a GGUF file?' }] as const
  const body = { model: 'tiny', messages: [...messages] }
  const message = await client.messages.stream({ ...body, max_tokens: 60, temperature: 0 }).finalMessage()

  expect(message.content).toMatchObject([{ type: 'text', text: direct.text }])
  const { inputTokens: input_tokens, outputTokens: output_tokens } = direct.usage
  expect(message.usage).toMatchObject({ input_tokens, output_tokens })
  expect(await client.messages.countTokens(body)).toMatchObject({ input_tokens })
})

test('the stop sequence that matched and the limit end an answer as in the other app', async () => {
  const { text } = await ask(apps.replica, question)
  const stop = text.split(' ')[3] ?? ''
  const stopped = await ask(apps.llm, question, { stop: [stop] })

  expect(stopped).toMatchObject({ finishReason: 'stop', stopSequence: stop })
  expect(stopped.text).toBe(text.slice(0, text.indexOf(stop)))
  expect(await ask(apps.llm, question, { maxTokens: 3 })).toMatchObject({
    ...{ finishReason: 'length', usage: { outputTokens: 3 } },
  })
})

test('the model calls a tool, and gets its result', async () => {
  const input = { ...chat('What is the weather in Paris?'), tools: [weather] } as const
  const direct = await ask(apps.replica, input)
  const answer = await ask(apps.llm, input)
  const [call] = answer.toolCalls ?? []

  expect(answer.finishReason).toBe('tool-calls')
  expect(answer.toolCalls?.map(({ id: _, ...rest }) => rest)).toEqual(
    direct.toolCalls?.map(({ id: _, ...rest }) => rest),
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

test('a forced call is of the tool that the request names', async () => {
  const other = { name: 'get_time', parameters: { type: 'object', properties: {} } }
  const toolChoice = { mode: 'required', names: ['get_time'] } as const

  expect(
    await ask(apps.llm, { ...chat('Hello'), tools: [weather, other], toolChoice } as never),
  ).toMatchObject({
    toolCalls: [{ name: 'get_time' }],
  })
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

test('what a breakpoint has cached is read by the next call', async () => {
  const system = {
    role: 'system',
    content: [{ type: 'text', text: 'Be brief. '.repeat(20), cache: '1h' }],
  } as const
  const hello = { role: 'user', content: [{ type: 'text', text: 'Hello' }] } as const
  const input = { kind: 'chat', messages: [system, hello] } as const
  const first = await ask(apps.llm, input, { maxTokens: 1 })
  const second = await ask(apps.llm, input, { maxTokens: 1 })

  expect(first.usage.cacheWriteTokens['1h']).toBeGreaterThan(0)
  expect(second.usage.cacheReadTokens).toBe(first.usage.cacheWriteTokens['1h'])
  expect(second.usage.inputTokens).toBe(first.usage.inputTokens)
})

test('a request for no output only fills the cache', async () => {
  expect(await ask(apps.llm, question, { maxTokens: 0 })).toMatchObject({
    ...{ text: '', finishReason: 'length', usage: { outputTokens: 0 } },
  })
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

test('a prompt that is too long names its tokens', async () => {
  await expect(ask(apps.llm, chat('word '.repeat(3_000)))).rejects.toMatchObject({
    ...{ code: 'context_length', details: { contextSize: 1_024 } },
  })
})

test.each([
  ['/v1/chat/completions', { seed: 1 }, { param: 'seed', code: 'unsupported_parameter' }],
  ['/v1/chat/completions', { reasoning_effort: 'minimal' }, { param: 'reasoning_effort' }],
  ['/api/chat', { options: { min_p: 0.1 } }, expect.stringMatching(/^invalid options.min_p: /)],
])('a field that the API lacks is an error in the API of the client: %s', async (path, fields, expected) => {
  const response = await fetch(`${apps.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], ...fields }),
  })

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: expected })
})

test('the list of models has those of the other app', async () => {
  const { name, modifiedAt } = await apps.replica.models.get('tiny')

  const models = await apps.engine.listModels?.()

  expect(models?.find((model) => model.name === name)).toMatchObject({ modifiedAt })
})
