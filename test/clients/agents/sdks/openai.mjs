/** Version 7 of OpenAI's client on both APIs. `details.mjs` has more of it. */
import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import { City, calls, greets, parallelCalls, parallelResults, result, weatherOf } from './questions.mjs'

const weather = { name: 'weather', description: 'Tells the weather.', parameters: City }
const user = (content) => ({ role: 'user', content })
const model = 'tiny'

/** Streams an answer to the messages. Returns its text, its calls, and the messages with those of the answer. */
const chats = {
  async ask(client, messages) {
    const settings = { model, messages, tools: [zodFunction(weather)] }
    const { message } = (await client.chat.completions.stream(settings).finalChatCompletion()).choices[0]
    const made = message.tool_calls?.map(({ id, function: { parsed_arguments: args } }) => ({ id, args }))
    return { text: message.content, calls: made ?? [], messages: [...messages, message] }
  },
  toResult: ({ id }, content) => ({ role: 'tool', tool_call_id: id, content }),
  async parse(client) {
    const settings = { model, messages: [user('Where?')], response_format: zodResponseFormat(City, 'place') }
    return (await client.chat.completions.parse(settings)).choices[0].message.parsed
  },
}
const responses = {
  async ask(client, input) {
    const settings = { model, input, tools: [zodResponsesFunction(weather)] }
    const { output, output_text } = await client.responses.stream(settings).finalResponse()
    const made = output.filter(({ type }) => type === 'function_call')
    const found = made.map(({ call_id: id, parsed_arguments: args }) => ({ id, args }))
    // The parsed fields are the client's own.
    const items = output.map(({ parsed_arguments: _, ...item }) => item)
    return { text: output_text, calls: found, messages: [...input, ...items] }
  },
  toResult: ({ id }, output) => ({ type: 'function_call_output', call_id: id, output }),
  async parse(client) {
    const text = { format: zodTextFormat(City, 'place') }
    return (await client.responses.parse({ model, input: 'Where?', text })).output_parsed
  },
}

function situations({ instructed, tiny }, { ask, toResult, parse }) {
  const clientOf = (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 })
  const client = clientOf(instructed)
  const loop = async (prompt) => {
    const first = await ask(client, [user(prompt)])
    const results = first.calls.map(async (call) => toResult(call, await weatherOf(call.args)))
    return (await ask(client, [...first.messages, ...(await Promise.all(results))])).text
  }
  return {
    'built-in model': async () => assert.notEqual((await ask(clientOf(tiny), [user('Hello')])).text, ''),
    tool: async () => assert.match(await loop(calls), result),
    'parallel calls': async () => assert.match(await loop(parallelCalls), parallelResults),
    'second turn': async () => {
      const { text, messages } = await ask(client, [user('Hello')])
      assert.equal(text, greets(1, 'Hello'))
      assert.equal((await ask(client, [...messages, user('And again?')])).text, greets(2, 'And again?'))
    },
    object: async () => assert.deepEqual(await parse(client), { city: 'Paris' }),
  }
}

export const clients = (urls) => ({
  'openai, chats': situations(urls, chats),
  'openai, responses': situations(urls, responses),
})
