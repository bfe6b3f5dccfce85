/** Names of models: the server gets its own spelling, and unknown names are errors of the caller. */
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { type UpstreamOptions, upstreamEngine } from '@modelmount/core/upstream'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { chatDelta, sendEvents, sendJson, UpstreamServer } from '../support/upstream-server.ts'

let server: UpstreamServer
beforeEach(async () => {
  server = await UpstreamServer.start()
  server.answer = (response, { path, body }) => {
    if (path === '/v1/embeddings')
      return sendJson(response, { data: [{ index: 0, embedding: [1, 0] }], usage: { prompt_tokens: 1 } })
    const { model } = body as { readonly model: string }
    if (model !== 'small') return sendJson(response, { error: { message: 'none' } }, 404)
    return sendEvents(response, chatDelta({ content: 'Hi' }), chatDelta({}, 'stop'), 'data: [DONE]\n\n').end()
  }
})
afterEach(() => server.close())

async function start(options: Partial<UpstreamOptions> = {}) {
  const engine = upstreamEngine({ url: server.url, server: 'other', ...options })
  const llm = await createLlm({ engine, models: emptyFolder() })
  const front = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(async () => {
    await front.close()
    await llm.close()
  })
  const post = async (path: string, body: object) => {
    const response = await fetch(front.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, text: await response.text() }
  }
  return { engine, llm, post }
}
const messages = [{ role: 'user', content: 'Hello' }]
const modelsSent = () => server.requests.flatMap(({ body }) => (body as { model?: string })?.model ?? [])

test.each(['small', 'small:latest'])('the server gets its own name for the model %s', async (model) => {
  const { post, llm } = await start()

  const chat = await post('/v1/chat/completions', { model, messages })
  const embedding = await post('/v1/embeddings', { model, input: 'Hello' })
  const shown = await post('/api/show', { model })
  const loaded = await post('/api/chat', { model })

  expect(chat.status).toBe(200)
  expect(JSON.parse(chat.text)).toMatchObject({ model })
  expect([embedding.status, shown.status, loaded.status]).toEqual([200, 200, 200])
  expect(modelsSent()).toEqual(['small', 'small'])
  expect(llm.loaded().map(({ name }) => name)).toEqual(['small'])
})

test('the server gets its own name for a spelling that the store knows', async () => {
  const { engine } = await start()
  const model = await engine.findModel?.('small')
  const input = {
    kind: 'chat',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  } as const
  const { signal } = new AbortController()

  const { text } = await collect(engine.generate({ model: 'Library/SMALL', input }, { signal, model }))

  expect(text).toBe('Hi')
  expect(modelsSent()).toEqual(['small'])
})

test('an unknown model is a 404 on every route, and is not remembered', async () => {
  const { post, llm, engine } = await start()

  for (const [path, body] of [
    ['/v1/chat/completions', { messages }],
    ['/v1/messages/count_tokens', { messages }],
    ['/api/chat', {}],
    ['/api/show', {}],
  ] as const) {
    const { status, text } = await post(path, { model: 'nope', ...body })
    expect([path, status]).toEqual([path, 404])
    expect(text).toContain('nope')
  }
  await expect(engine.unload('nope')).rejects.toMatchObject({ code: 'not_found' })
  expect(llm.loaded()).toEqual([])
})

test('a model that the app does not name is not called, even if the server has it', async () => {
  const { post } = await start({ models: ['large'] })

  const { status } = await post('/v1/chat/completions', { model: 'small', messages })

  expect(status).toBe(404)
  expect(modelsSent()).toEqual([])
})
