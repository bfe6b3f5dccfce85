/** LangChain on all three APIs. */
import assert from 'node:assert/strict'
import { ChatAnthropic } from '@langchain/anthropic'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOllama } from '@langchain/ollama'
import { ChatOpenAI } from '@langchain/openai'
import { City, calls, greets, parallelCalls, parallelResults, result, weatherOf } from './questions.mjs'

const openai = (url, useResponsesApi) =>
  new ChatOpenAI({
    ...{ model: 'tiny', apiKey: 'any', useResponsesApi, maxRetries: 0 },
    configuration: { baseURL: `${url}/v1` },
  })
const chats = {
  '@langchain/openai, chats': (url) => openai(url, false),
  '@langchain/openai, responses': (url) => openai(url, true),
  '@langchain/anthropic': (url) =>
    new ChatAnthropic({ model: 'tiny', apiKey: 'any', anthropicApiUrl: url, maxRetries: 0 }),
  '@langchain/ollama': (url) => new ChatOllama({ model: 'tiny', baseUrl: url, maxRetries: 0 }),
}
const weather = { name: 'weather', description: 'Tells the weather.', schema: City }

async function streamed(model, input) {
  let whole
  for await (const chunk of await model.stream(input)) whole = whole ? whole.concat(chunk) : chunk
  return whole
}

function situations(create, { instructed, tiny }) {
  const model = create(instructed)
  /** Runs the called tools, and returns the next answer. */
  const loop = async (prompt) => {
    const messages = [new HumanMessage(prompt)]
    const bound = model.bindTools([weather])
    const answer = await streamed(bound, messages)
    for (const { id, args } of answer.tool_calls)
      messages.push(new ToolMessage({ tool_call_id: id, content: await weatherOf(args) }))
    messages.splice(1, 0, answer)
    return (await bound.invoke(messages)).text
  }
  return {
    'built-in model': async () => {
      assert.notEqual((await create(tiny).invoke('Hello')).text, '')
      assert.notEqual((await streamed(create(tiny), 'Hello')).text, '')
    },
    tool: async () => assert.match(await loop(calls), result),
    'parallel calls': async () => assert.match(await loop(parallelCalls), parallelResults),
    'second turn': async () => {
      const first = await streamed(model, 'Hello')
      assert.equal(first.text, greets(1, 'Hello'))
      const messages = [new HumanMessage('Hello'), first, new HumanMessage('And again?')]
      assert.equal((await streamed(model, messages)).text, greets(2, 'And again?'))
    },
    object: async () => {
      const structured = model.withStructuredOutput(City, { name: 'place' })
      assert.deepEqual(await structured.invoke('Where?'), { city: 'Paris' })
    },
  }
}

export const clients = (urls) =>
  Object.fromEntries(Object.entries(chats).map(([name, create]) => [name, situations(create, urls)]))
