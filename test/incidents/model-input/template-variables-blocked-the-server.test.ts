/**
 * B-8: `chat_template_kwargs` of a request replaced the template and the arguments of its renderer, and
 * blocked the server. Here they are variables of the template, which cannot replace any other variable.
 */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import type OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type Listening, listen } from '../../support/listen.ts'
import { post } from '../../support/served.ts'

const models = emptyFolder()
let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({ models, local: { contextSize: 1_027 } })
  server = await listen(toNodeHandler(routesFor(), llm))
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

const endless = '{% for i in range(999999) %}{% for j in range(999999) %}{% endfor %}{% endfor %}'

test.each<[what: string, variables: object]>([
  ['another template', { chat_template: endless, source: endless, template: endless }],
  ['arguments of a renderer', { tokenize: true, return_tensors: 'pt', continue_final_message: true }],
  ['standard variables', { messages: [], bos_token: endless, eos_token: '', add_generation_prompt: false }],
  ['names of functions', { range: 1, raise_exception: 1, namespace: 1, strftime_now: 1 }],
  ['a prototype', JSON.parse('{"__proto__":{"messages":[]},"constructor":{"prototype":{}}}')],
  ['many large values', Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`v${i}`, [endless]]))],
])('%s in chat_template_kwargs change neither the prompt nor the answer', async (_what, variables) => {
  const ask = async (more: object): Promise<readonly unknown[]> => {
    const response = await post(`${server.url}/v1/chat/completions`, {
      model: 'tiny',
      temperature: 0,
      messages: [{ role: 'user', content: 'Hello' }],
      ...more,
    })
    const { choices, usage } = (await response.json()) as OpenAI.ChatCompletion
    return [response.status, choices?.[0]?.message.content, usage?.prompt_tokens]
  }
  const plain = await ask({})
  const startedAt = performance.now()

  const varied = await ask({ chat_template_kwargs: variables })

  expect(plain.slice(0, 2)).toEqual([200, 'Hello! How can I help you?'])
  expect(varied).toEqual(plain)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})
