/** What the playground of the console sends and reads, against real routes. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addPart, startAnswer, toMessage } from '../../packages/console/web/pages/playground/answer.ts'
import type { ApiName, ChatRequest } from '../../packages/console/web/pages/playground/apis/api.ts'
import { apis } from '../../packages/console/web/pages/playground/apis/index.ts'
import {
  exampleSchema,
  exampleTools,
  parseTools,
} from '../../packages/console/web/pages/playground/settings.ts'
import { createSnippet, snippetNames } from '../../packages/console/web/pages/playground/snippets.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

let llm: Llm
let server: Listening
let key = ''
beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), auth: 'keys', database: ':memory:' })
  ;({ secret: key } = await llm.keys.create({ name: 'Ada', scopes: ['inference'] }))
  server = await listen(toNodeHandler(routesFor(), llm, { prefix: '/llm' }))
})
afterAll(async () => {
  await server.close()
  await llm.close()
})

const request: ChatRequest = {
  model: 'tiny',
  messages: [{ role: 'user', text: "Hello, it's me" }],
  temperature: 0,
  maxTokens: 40,
  tools: [],
  isCached: true,
}
const parsedTools = parseTools(exampleTools)
const tools = 'value' in parsedTools ? parsedTools.value : []

async function ask(name: ApiName, sent: ChatRequest) {
  const { path, toBody, measuring, readAnswer } = apis[name]
  const response = await fetch(`${server.url}/llm${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...toBody(sent), ...measuring }),
  })
  expect(response.status).toBe(200)
  let answer = startAnswer(0)
  for await (const part of readAnswer(response)) answer = addPart(answer, part, 1)
  return answer
}

describe.each(Object.keys(apis) as ApiName[])('with the %s API', (name) => {
  test('an answer has text, usage and a reason for its end', async () => {
    const answer = await ask(name, request)

    expect(answer.text).not.toBe('')
    expect(answer.usage?.inputTokens).toBeGreaterThan(0)
    expect(answer.usage?.outputTokens).toBeGreaterThan(0)
    expect(answer.finishReason).toMatch(/^(stop|end_turn|length|max_tokens)$/)
  })

  test('thinking is turned on and off', async () => {
    const messages = [{ role: 'user', text: 'What is 12 plus 30?' }] as const
    const on = await ask(name, { ...request, messages, maxTokens: 200, isThinking: true })
    const off = await ask(name, { ...request, messages, isThinking: false })

    expect(on.reasoning).not.toBe('')
    expect(off.reasoning).toBe('')
    expect(off.text).toContain('42')
  })

  test('the tokens of a repeated prompt come from the cache', async () => {
    const text = 'Please tell me a story about a person who counts tokens. '.repeat(40)
    const long: ChatRequest = {
      ...request,
      messages: [{ role: 'user', text: `${name}: ${text}` }],
      maxTokens: 1,
    }
    const first = await ask(name, long)
    const second = await ask(name, long)

    expect(second.usage?.inputTokens).toBe(first.usage?.inputTokens)
    expect(second.usage?.cachedTokens).toBeGreaterThan(300)
  })

  test('a tool is called, and its result is answered', async () => {
    const question = { role: 'user', text: 'What is the weather in Paris?' } as const
    const called = toMessage(await ask(name, { ...request, messages: [question], tools }))
    const [call] = called?.role === 'assistant' ? called.toolCalls : []
    expect(call).toMatchObject({ name: 'get_weather', arguments: expect.stringMatching(/"city": ?"Paris"/) })
    if (!called || !call) return
    const result = { role: 'tool', callId: call.id, name: call.name, text: '{"temperature": 21}' } as const

    const answer = await ask(name, { ...request, messages: [question, called, result], tools })

    expect(answer.text).toContain('21')
  })

  test('an answer follows a schema', async () => {
    const schema = JSON.parse(exampleSchema) as object
    const messages = [{ role: 'user', text: 'Ada is 36 years old. Give name and age as JSON.' }] as const
    const answer = await ask(name, { ...request, messages, schema })

    expect(Object.keys(JSON.parse(answer.text) as object).sort()).toEqual(['age', 'name'])
  })
})

test.each(snippetNames)('the code for %s runs', async (name) => {
  const code = createSnippet(name, { request, api: 'openai', apiUrl: `${server.url}/llm/`, needsKey: true })
  expect(code).not.toContain(key)
  const [command, ...flags] = name === 'curl' ? ['sh', '-c'] : [process.execPath, '--input-type=module', '-e']

  const { stdout } = await promisify(execFile)(command, [...flags, code], {
    env: { ...process.env, MODELMOUNT_API_KEY: key },
  })

  // `curl` prints the events of the stream.
  expect(stdout).toMatch(name === 'curl' ? /"content":"Hel".*"content":"lo"/s : /^Hello/)
})
