/**
 * Each dialect rejects a prompt longer than the context, and one that never fits into the engine. The Ollama API
 * truncates a prompt longer than the context by default.
 */
import { createLlm, type Llm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import type { ChatResponse } from 'ollama'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

const models = emptyFolder()
const maxPromptCharacters = 2 ** 20
let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({ models, local: { contextSize: 256, maxPromptCharacters } })
  server = await listen(express().use(llmRouter(llm)))
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

const question = { role: 'user', content: 'Hello' }
const messages = [
  { role: 'user', content: 'fox '.repeat(500) },
  { role: 'assistant', content: 'Yes.' },
  question,
]
const post = (path: string, fields: object): Promise<Response> =>
  fetch(`${server.url}${path}`, {
    method: 'POST',
    body: JSON.stringify({ model: 'tiny', messages, stream: false, ...fields }),
  })
test.each([
  ['/v1/chat/completions', {}],
  ['/v1/chat/completions', { stream: true }],
  ['/v1/messages', { max_tokens: 10 }],
  ['/v1/messages', { max_tokens: 10, stream: true }],
  ['/api/chat', { truncate: false }],
  ['/api/chat', { truncate: false, stream: true }],
])('%s with %j gives a 400 that names the prompt length and the context size', async (path, fields) => {
  const response = await post(path, fields)
  const body = await response.text()

  expect(response.status).toBe(400)
  expect(body).toMatch(/\b152\d tokens\b.*\b256\b|\b256 tokens\b.*\b152\d\b/)
})

const longText = 'x'.repeat(maxPromptCharacters + 1)
const longChat = { messages: [{ role: 'user', content: longText }] }
const openAiError = { error: { type: 'invalid_request_error', message: expect.any(String) } }
const anthropicError = { type: 'error', ...openAiError }
const ollamaError = { error: expect.any(String) }

test.each([
  ['/v1/chat/completions', longChat, openAiError],
  ['/v1/chat/completions', { ...longChat, stream: true }, openAiError],
  ['/v1/embeddings', { input: longText, messages: undefined }, openAiError],
  ['/v1/messages', { ...longChat, max_tokens: 10 }, anthropicError],
  ['/v1/messages/count_tokens', longChat, anthropicError],
  ['/api/chat', longChat, ollamaError],
  ['/api/chat', { ...longChat, stream: true }, ollamaError],
])('%s (%#) gives a 400 for a prompt above `local.maxPromptCharacters`', async (path, fields, error) => {
  const response = await post(path, fields)
  const body = (await response.json()) as object

  expect(response.status).toBe(400)
  expect(response.headers.has('retry-after')).toBe(false)
  expect(body).toMatchObject(error)
  expect(JSON.stringify(body)).toMatch(/has 10485\d\d characters.* 1048576 .*local\.maxPromptCharacters/)
})

test('/api/chat leaves out the oldest messages, as Ollama does', async () => {
  const options = { temperature: 0 }
  const answered = async (fields: object): Promise<unknown> => {
    const { message, prompt_eval_count } = (await (await post('/api/chat', fields)).json()) as ChatResponse
    return { message, prompt_eval_count }
  }

  expect(await answered({ options })).toEqual(await answered({ options, messages: [question] }))
})
