/** OpenAI's Agents SDK on both APIs. */
import assert from 'node:assert/strict'
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { City, calls, greets, parallelCalls, parallelResults, result, weatherOf } from './questions.mjs'

const parameters = { name: 'weather', description: 'Tells the weather.', parameters: City }
const weather = tool({ ...parameters, execute: weatherOf })
const agentOf = (more) => new Agent({ name: 'helper', model: 'tiny', instructions: 'Be brief.', ...more })

const runnerOf = (url, useResponses) =>
  new Runner({
    modelProvider: new OpenAIProvider({ baseURL: `${url}/v1`, apiKey: 'any', useResponses }),
    // Traces would go to OpenAI.
    tracingDisabled: true,
  })

function situations({ instructed, tiny }, useResponses) {
  const runner = runnerOf(instructed, useResponses)
  return {
    'built-in model': async () => {
      const { finalOutput } = await runnerOf(tiny, useResponses).run(agentOf(), 'Hello')
      assert.notEqual(finalOutput, '')
    },
    tool: async () => {
      assert.match((await runner.run(agentOf({ tools: [weather] }), calls)).finalOutput, result)
    },
    'parallel calls': async () => {
      const streamed = await runner.run(agentOf({ tools: [weather] }), parallelCalls, { stream: true })
      await streamed.completed
      assert.match(streamed.finalOutput, parallelResults)
    },
    'second turn': async () => {
      const first = await runner.run(agentOf({ tools: [weather] }), calls)
      const again = [...first.history, { role: 'user', content: 'And again?' }]
      const streamed = await runner.run(agentOf({ tools: [weather] }), again, { stream: true })
      await streamed.completed
      assert.equal(streamed.finalOutput, greets(2, 'And again?'))
    },
    object: async () => {
      const { finalOutput } = await runner.run(agentOf({ outputType: City }), 'Where?')
      assert.deepEqual(finalOutput, { city: 'Paris' })
    },
  }
}

export const clients = (urls) => ({
  '@openai/agents, responses': situations(urls, true),
  '@openai/agents, chats': situations(urls, false),
})
