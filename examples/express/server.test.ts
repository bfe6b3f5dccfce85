import { createLlm, type Llm } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import type { Express } from 'express'
import request from 'supertest'
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
  let app: Express

  beforeAll(async () => {
    llm = await createLlm({ models, ...(engine && { engine }) })
    app = createApp(llm)
  })

  afterAll(() => llm.close())

  test('the chat route answers', async () => {
    const { body } = await request(app)
      .post('/llm/v1/chat/completions')
      .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
      .expect(200)

    expect(body.choices[0].message.content).toBe(hello)
  })

  test("the app's own routes still answer", async () => {
    const { body } = await request(app).get('/api/users').expect(200)

    expect(body).toEqual([
      { id: 1, name: 'Ada' },
      { id: 2, name: 'Grace' },
    ])
  })

  test('a route of the app asks the model', async () => {
    const { body } = await request(app).get('/api/users/2/story').expect(200)

    expect(body.user).toBe('Grace')
    expect(body.story).toContain('Grace')
  })

  test('an unknown path falls through to the app', async () => {
    await request(app).get('/api/users/3/story').expect(404, { error: 'no such user' })
    const { text } = await request(app).get('/nowhere').expect(404)

    expect(text).toContain('Cannot GET /nowhere')
  })
})
