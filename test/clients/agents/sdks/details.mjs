/** Details of several clients. The name of the model chooses the answer, see `scripted-server.ts`. */
import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { ChatAnthropic } from '@langchain/anthropic'
import { HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { LengthFinishReasonError } from 'openai/error'
import { zodFunction, zodResponseFormat, zodResponsesFunction } from 'openai/helpers/zod'
import { z } from 'zod'

const [urls] = process.argv.slice(2)
const { scripted: url } = JSON.parse(urls)
const baseURL = `${url}/v1`
const greeting = 'Hello there.'
const City = z.object({ city: z.string() })
const messages = [{ role: 'user', content: 'Hello' }]
const openai = new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 })
const aiOpenai = createOpenAI({ baseURL, apiKey: 'any' })
const aiAnthropic = createAnthropic({ baseURL, apiKey: 'any' })
const langOpenai = (model, more) =>
  new ChatOpenAI({ model, apiKey: 'any', maxRetries: 0, configuration: { baseURL }, ...more })
const langAnthropic = (model) =>
  new ChatAnthropic({ model, apiKey: 'any', anthropicApiUrl: url, maxTokens: 100, maxRetries: 0 })

const weather = { description: 'Tells the weather.', inputSchema: City }
const run = tool({ ...weather, execute: async ({ city }) => `rain in ${city}` })
const now = tool({ description: 'Tells the time.', inputSchema: z.object({}) })

async function collect(iterable) {
  const items = []
  for await (const item of iterable) items.push(item)
  return items
}

async function finalOf(stream) {
  let whole
  for await (const chunk of stream) whole = whole ? whole.concat(chunk) : chunk
  return whole
}

/** Each part of a stream of the AI SDK, without an error. */
async function partsOf(settings) {
  const errors = []
  const result = streamText({ prompt: 'Hello', onError: ({ error }) => errors.push(error), ...settings })
  const parts = await collect(result.fullStream)
  assert.deepEqual(errors, [])
  const finish = parts.at(-1)
  assert.equal(finish.type, 'finish')
  assert.ok(finish.totalUsage.inputTokens > 0)
  return { types: parts.map(({ type }) => type), finish, text: await result.text, result }
}

const checks = {
  'OpenAI 7: a cut answer makes parse() throw a LengthFinishReasonError': () =>
    assert.rejects(
      openai.chat.completions.parse({
        ...{ model: 'json', messages, max_tokens: 1, response_format: zodResponseFormat(City, 'place') },
      }),
      LengthFinishReasonError,
    ),

  'OpenAI 7: the helpers join text and calls of a stream': async () => {
    const tools = [zodFunction({ name: 'weather', parameters: City })]
    const chat = (model, more) => openai.chat.completions.stream({ model, messages, ...more })
    assert.equal(await chat('tiny').finalContent(), greeting)
    const { choices } = await chat('calls', { tools }).finalChatCompletion()
    assert.deepEqual(choices[0].message.tool_calls[0].function.parsed_arguments, { city: 'Paris' })
  },

  'OpenAI 7: vectors in base64 become numbers': async () => {
    const vectors = async (more) =>
      (await openai.embeddings.create({ model: 'tiny', input: 'fox', ...more })).data[0].embedding
    const [packed, floats] = [await vectors(), await vectors({ encoding_format: 'float' })]
    assert.equal(packed.length, 8)
    for (const [at, value] of packed.entries()) assert.ok(Math.abs(value - floats[at]) < 1e-6)
  },

  'OpenAI 7: the helpers join text and calls of a streamed response': async () => {
    const tools = [zodResponsesFunction({ name: 'weather', parameters: City })]
    const respond = (model, more) =>
      openai.responses.stream({ model, input: 'Hello', ...more }).finalResponse()
    assert.equal((await respond('tiny')).output_text, greeting)
    const { output } = await respond('calls', { tools })
    assert.deepEqual(output[0].parsed_arguments, { city: 'Paris' })
  },

  "AI SDK with OpenAI's provider: text, calls and reasoning, of chats and responses": async () => {
    for (const model of [aiOpenai.chat, aiOpenai.responses]) {
      assert.equal((await partsOf({ model: model('tiny') })).text, greeting)
      assert.equal((await generateText({ model: model('tiny'), prompt: 'Hello' })).text, greeting)
      for (const ask of [partsOf, generateText]) {
        const stopWhen = stepCountIs(3)
        const { text } = await ask({
          model: model('calls'),
          prompt: 'Hello',
          tools: { weather: run },
          stopWhen,
        })
        assert.equal(text, 'It rains.')
      }
    }
    const providerOptions = { openai: { reasoningSummary: 'auto', forceReasoning: true } }
    const { reasoningText, text } = await generateText({
      ...{ model: aiOpenai.responses('thinks'), prompt: 'Hello', providerOptions },
    })
    assert.deepEqual([reasoningText, text], ['Hm.', greeting])
    assert.equal(
      (await generateText({ model: aiOpenai.responses('thinks'), prompt: 'Hello' })).text,
      greeting,
    )
  },

  "AI SDK with Anthropic's provider: text, calls and thinking": async () => {
    const providerOptions = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } }
    assert.equal((await generateText({ model: aiAnthropic('tiny'), prompt: 'Hello' })).text, greeting)
    const thinks = { model: aiAnthropic('thinks'), maxOutputTokens: 50, providerOptions }
    const { types, text, finish } = await partsOf(thinks)
    assert.ok(types.includes('reasoning-delta'))
    assert.deepEqual([text, finish.finishReason], [greeting, 'stop'])
    for (const ask of [partsOf, generateText]) {
      const stopWhen = stepCountIs(3)
      const called = await ask({
        ...{ model: aiAnthropic('calls'), prompt: 'Hello', tools: { weather: run }, stopWhen },
      })
      assert.equal(called.text, 'It rains.')
    }
  },

  "AI SDK with Anthropic's provider: an empty answer, and a call without arguments": async () => {
    assert.equal((await generateText({ model: aiAnthropic('nothing'), prompt: 'Hello' })).text, '')
    assert.equal((await partsOf({ model: aiAnthropic('nothing') })).text, '')
    const bare = { model: aiAnthropic('bare-call'), prompt: 'Hello', tools: { now } }
    assert.deepEqual((await generateText(bare)).toolCalls[0].input, {})
    assert.deepEqual((await (await partsOf(bare)).result.toolCalls)[0].input, {})
  },

  "AI SDK with Anthropic's provider: errors have our text, and a full queue is tried again": async () => {
    const ask = (model, maxRetries) =>
      generateText({ model: aiAnthropic(model), prompt: 'Hello', maxRetries })
    await assert.rejects(ask('error-invalid_request', 0), { message: 'What to do next.', statusCode: 400 })
    await assert.rejects(ask('error-overloaded', 1), ({ errors, lastError }) => {
      assert.deepEqual([errors.length, lastError.statusCode], [2, 529])
      assert.equal(lastError.message, 'What to do next.')
      return true
    })
  },

  "LangChain with OpenAI's API: text and calls, of chats and responses": async () => {
    for (const useResponsesApi of [false, true]) {
      const lang = (model) => langOpenai(model, { useResponsesApi })
      const bound = lang('calls').bindTools([{ name: 'weather', ...{ schema: City, description: 'It.' } }])
      assert.equal((await lang('tiny').invoke('Hello')).text, greeting)
      assert.equal((await finalOf(await lang('tiny').stream('Hello'))).text, greeting)
      for (const message of [await bound.invoke('Hello'), await finalOf(await bound.stream('Hello'))])
        assert.deepEqual(
          message.tool_calls.map(({ args }) => args),
          [{ city: 'Paris' }],
        )
    }
  },

  "LangChain with Anthropic's API: text, calls, objects and usage": async () => {
    const whole = await langAnthropic('tiny').invoke('Hello')
    const streamed = await finalOf(await langAnthropic('tiny').stream('Hello'))
    assert.deepEqual([whole.text, streamed.text], [greeting, greeting])
    for (const kind of ['input_tokens', 'output_tokens', 'total_tokens'])
      assert.equal(streamed.usage_metadata[kind], whole.usage_metadata[kind])
    const bound = langAnthropic('calls').bindTools([{ name: 'weather', schema: City, description: 'It.' }])
    for (const message of [await bound.invoke('Hello'), await finalOf(await bound.stream('Hello'))])
      assert.deepEqual(
        message.tool_calls.map(({ args }) => args),
        [{ city: 'Paris' }],
      )
    const structured = langAnthropic('calls').withStructuredOutput(City, { name: 'weather' })
    assert.deepEqual(await structured.invoke([new HumanMessage('Hello')]), { city: 'Paris' })
  },

  "LangChain with Anthropic's API: an empty answer, and a call without arguments": async () => {
    const nothing = langAnthropic('nothing')
    for (const message of [await nothing.invoke('Hello'), await finalOf(await nothing.stream('Hello'))])
      assert.equal(message.text, '')
    const bound = langAnthropic('bare-call').bindTools([
      { name: 'now', schema: z.object({}), description: 'Tells the time.' },
    ])
    for (const message of [await bound.invoke('Hello'), await finalOf(await bound.stream('Hello'))])
      assert.deepEqual(
        message.tool_calls.map(({ args }) => args),
        [{}],
      )
  },
}

export const clients = () => ({ details: checks })
