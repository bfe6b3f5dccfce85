/** Tests the app with the built-in model, and with a script instead of a model. */
import { once } from 'node:events'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'

describe('with the built-in model', () => {
  let llm
  let app

  beforeAll(async () => {
    llm = await createLlm()
    app = createApp(llm)
  })

  afterAll(() => llm.close())

  test('the chat route answers', async () => {
    const { body } = await request(app)
      .post('/llm/v1/chat/completions')
      .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
      .expect(200)

    expect(body.choices[0].message.content).toBe('Hello! How can I help you?')
  })

  test('a route of the app asks the model', async () => {
    const { body } = await request(app).get('/api/users/2/story').expect(200)

    expect(body).toEqual({ user: 'Grace', story: expect.stringContaining('Grace') })
  })
})

describe('with a script', () => {
  let engine
  let llm
  let app

  beforeAll(async () => {
    engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
    llm = await createLlm({ engine })
    app = createApp(llm)
  })

  afterAll(() => llm.close())

  test("the app's own routes answer", async () => {
    await request(app)
      .get('/api/users')
      .expect(200, [
        { id: 1, name: 'Ada' },
        { id: 2, name: 'Grace' },
      ])
    await request(app).get('/api/users/3/story').expect(404, { error: 'no such user' })
    await request(app).get('/nowhere').expect(404)
  })

  test.each([
    ['/api/users/1/story', {}],
    [
      '/llm/v1/chat/completions',
      { method: 'POST', body: '{ "model": "tiny", "messages": [{ "role": "user", "content": "Hi" }] }' },
    ],
  ])('the model stops when a client of %s disconnects', async (path, options) => {
    const server = app.listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const client = new AbortController()
    const answer = fetch(`http://127.0.0.1:${server.address().port}${path}`, {
      ...options,
      signal: client.signal,
    })
    await expect.poll(() => engine.running).toBe(1)

    client.abort()

    await expect(answer).rejects.toThrow('aborted')
    await expect.poll(() => engine.running).toBe(0)
  })
})
