/** The AI SDK with five providers, in their default settings. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import * as ai from 'ai'
import { createOllama as createOllamaOfficial } from 'ai-sdk-ollama'
import { createOllama } from 'ollama-ai-provider-v2'
import { City, calls, greets, parallelCalls, parallelResults, result, weatherOf } from './questions.mjs'

const { generateText, Output, stepCountIs, streamText, tool } = ai

/** Each provider, as a function of the URL of the server. */
const providers = {
  '@ai-sdk/openai': (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'any' }),
  '@ai-sdk/openai-compatible': (url) =>
    createOpenAICompatible({
      ...{ name: 'modelmount', baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true },
    }),
  '@ai-sdk/anthropic': (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'any' }),
  'ollama-ai-provider-v2': (url) => createOllama({ baseURL: `${url}/api` }),
  'ai-sdk-ollama': (url) => createOllamaOfficial({ baseURL: url }),
}
const weather = tool({ description: 'Tells the weather.', inputSchema: City, execute: weatherOf })

/** Streams an answer, and returns its text and messages. */
async function stream(settings) {
  const errors = []
  const answer = streamText({ ...settings, onError: ({ error }) => errors.push(error) })
  await answer.consumeStream()
  assert.deepEqual(errors, [])
  const [text, usage, response] = [await answer.text, await answer.totalUsage, await answer.response]
  assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0)
  return { text, messages: (await answer.steps).flatMap((step) => step.response.messages), response }
}

const situations = (create, { instructed, tiny }) => {
  const model = create(instructed)('tiny')
  /** Runs a loop of tools, streamed and whole. */
  const loops = async (prompt, expected) => {
    const settings = { model, prompt, tools: { weather }, stopWhen: stepCountIs(3) }
    assert.match((await stream(settings)).text, expected)
    assert.match((await generateText(settings)).text, expected)
  }
  return {
    'built-in model': async () => {
      const settings = { model: create(tiny)('tiny'), prompt: 'Hello' }
      assert.notEqual((await generateText(settings)).text, '')
      assert.notEqual((await stream(settings)).text, '')
    },
    tool: () => loops(calls, result),
    'parallel calls': () => loops(parallelCalls, parallelResults),
    'second turn': async () => {
      const first = [{ role: 'user', content: 'Hello' }]
      const { text, response } = await stream({ model, messages: first })
      assert.equal(text, greets(1, 'Hello'))
      const messages = [...first, ...response.messages, { role: 'user', content: 'And again?' }]
      assert.equal((await stream({ model, messages })).text, greets(2, 'And again?'))
    },
    object: async () => {
      const output = Output.object({ schema: City })
      assert.deepEqual((await generateText({ model, prompt: 'Where?', output })).output, { city: 'Paris' })
    },
  }
}

/** Whole batches of Anthropic's provider, directly and behind a proxy that adds a prefix. Version 6 has none. */
const batchOf = ({ instructed, proxied }) => ({
  'batch, also behind a proxy': async () => {
    for (const url of [instructed, proxied]) {
      const provider = providers['@ai-sdk/anthropic'](url)
      const requests = ['a', 'b'].map((id) => ({ id, type: 'text', model: 'tiny', prompt: `I am ${id}.` }))
      const batch = await ai.experimental_startBatch({ provider, requests })
      while ((await ai.experimental_getBatchStatus({ provider, batch })).status === 'pending') await delay(50)
      const texts = []
      for await (const item of ai.experimental_getBatchResults({ provider, batch }))
        texts.push([item.id, item.text])
      assert.deepEqual(texts.sort(), [
        ['a', greets(1, 'I am a.')],
        ['b', greets(1, 'I am b.')],
      ])
    }
  },
})

export const clients = (urls) =>
  Object.fromEntries(
    Object.entries(providers).map(([name, create]) => [
      name,
      {
        ...situations(create, urls),
        ...(name === '@ai-sdk/anthropic' && ai.experimental_startBatch && batchOf(urls)),
      },
    ]),
  )
