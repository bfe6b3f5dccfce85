import { createLlm, type Llm } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
// @ts-expect-error The example is plain JavaScript, without types.
import { createApp } from './server.js'

describe.each<[what: string, engine: Engine | undefined, hello: string]>([
  ['the built-in model', undefined, 'Hello! How can I help you?'],
  ['a script', scriptedEngine('Grace went home.'), 'Grace went home.'],
])('with %s', (_what, engine, hello) => {
  const models = emptyFolder()
  let llm: Llm
  let app: FastifyInstance

  beforeAll(async () => {
    llm = await createLlm({ models, ...(engine && { engine }) })
    app = createApp(llm)
  })

  afterAll(async () => {
    await app.close()
    await llm.close()
  })

  test('the chat route answers', async () => {
    const response = await app.inject({
      method: 'POST',
      url: '/llm/v1/chat/completions',
      payload: { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 },
    })

    expect(response.json().choices[0].message.content).toBe(hello)
  })

  test("the app's own routes still answer", async () => {
    const response = await app.inject('/api/users')

    expect(response.json()).toEqual([
      { id: 1, name: 'Ada' },
      { id: 2, name: 'Grace' },
    ])
  })

  test('a route of the app asks the model', async () => {
    const { user, story } = (await app.inject('/api/users/2/story')).json()

    expect(user).toBe('Grace')
    expect(story).toContain('Grace')
  })

  test('unknown paths are answered by the app, and those under the prefix in the format of the API', async () => {
    const [user, outside, below] = await Promise.all(
      ['/api/users/3/story', '/nowhere', '/llm/v1/nowhere'].map((path) => app.inject(path)),
    )

    expect(user?.json()).toEqual({ error: 'no such user' })
    expect(outside?.json().message).toBe('Route GET:/nowhere not found')
    expect(below?.json().error.message).toBe('Invalid URL (GET /v1/nowhere)')
  })
})
