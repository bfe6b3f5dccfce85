/** Tests the app with the built-in model, and with a script instead of a model. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApp } from './app.js'

const hi = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 }

describe('with the built-in model', () => {
  let app

  beforeAll(async () => {
    app = createApp(await createLlm())
  })

  afterAll(() => app.close()) // closes the model, too

  test('the chat route answers', async () => {
    const response = await app.inject({ method: 'POST', url: '/llm/v1/chat/completions', payload: hi })

    expect(response.json().choices[0].message.content).toBe('Hello! How can I help you?')
  })

  test('a route of the app asks the model', async () => {
    const response = await app.inject('/api/users/2/story')

    expect(response.json()).toEqual({ user: 'Grace', story: expect.stringContaining('Grace') })
  })
})

describe('with a script', () => {
  let engine
  let app
  let url

  beforeAll(async () => {
    engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
    app = createApp(await createLlm({ engine }))
    url = await app.listen({ port: 0, host: '127.0.0.1' })
  })

  afterAll(() => app.close())

  test("the app's own routes answer", async () => {
    const [users, noUser, nowhere] = await Promise.all(
      ['/api/users', '/api/users/3/story', '/nowhere'].map((path) => app.inject(path)),
    )

    expect(users.json()).toEqual([
      { id: 1, name: 'Ada' },
      { id: 2, name: 'Grace' },
    ])
    expect(noUser.json()).toEqual({ error: 'no such user' })
    expect(nowhere.statusCode).toBe(404)
  })

  test.each([
    ['/api/users/1/story', {}],
    ['/llm/v1/chat/completions', { method: 'POST', body: JSON.stringify(hi) }],
  ])('the model stops when a client of %s disconnects', async (path, options) => {
    const client = new AbortController()
    const answer = fetch(url + path, { ...options, signal: client.signal })
    await expect.poll(() => engine.running).toBe(1)

    client.abort()

    await expect(answer).rejects.toThrow('aborted')
    await expect.poll(() => engine.running).toBe(0)
  })
})
