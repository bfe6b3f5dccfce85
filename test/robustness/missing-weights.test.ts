/** Every route reports a model whose weights were deleted while its manifest remains, with the same error. */
import { rm } from 'node:fs/promises'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const models = emptyFolder()
let url: string
let close: () => Promise<void>

beforeAll(async () => {
  const llm = await createLlm({ models, scopes: ['inference', 'models'] })
  await llm.models.copy('tiny', 'mine')
  await rm((await llm.models.get('mine')).path)
  const server = await listen(toNodeHandler(routesFor(), llm))
  url = server.url
  close = async () => {
    await server.close()
    await llm.close()
  }
})

afterAll(() => close())

const ask = (path: string, fields: object): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'mine', ...fields }),
  })

const messages = [{ role: 'user', content: 'Hi' }]

test.each([
  ['/api/generate', { prompt: 'Hi' }],
  ['/api/generate', { prompt: 'Hi', stream: false }],
  ['/api/generate', {}],
  ['/api/chat', { messages }],
  ['/api/chat', {}],
  ['/api/embed', { input: 'Hi' }],
  ['/api/embed', {}],
  ['/api/embeddings', { prompt: 'Hi' }],
  ['/api/show', {}],
  ['/v1/chat/completions', { messages }],
  ['/v1/chat/completions', { messages, stream: true }],
  ['/v1/completions', { prompt: 'Hi' }],
  ['/v1/embeddings', { input: 'Hi' }],
  ['/v1/messages', { messages, max_tokens: 9 }],
  ['/v1/messages/count_tokens', { messages }],
])('%s with %j gives a 404 that names the missing weights', async (path, fields) => {
  const response = await ask(path, fields)

  expect(await response.text()).toMatch(
    /the weights of the model .*mine:latest.* are not found, try pulling it again/,
  )
  expect(response.status).toBe(404)
})

test('a model without weights can be unloaded, and is still listed', async () => {
  for (const path of ['/api/generate', '/api/chat'])
    expect(await (await ask(path, { keep_alive: 0 })).json()).toMatchObject({ done_reason: 'unload' })

  const { models: listed } = (await (await fetch(`${url}/api/tags`)).json()) as { models: { name: string }[] }

  expect(listed.map(({ name }) => name)).toContain('mine:latest')
})
