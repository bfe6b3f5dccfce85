/** Tests the app with the built-in model, and with a script instead of a model. */
import { createLlm, type Llm } from '@modelmount/core'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { LLM } from '@modelmount/nest'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AppModule } from './src/app.module.ts'

async function createApp(llm: Llm): Promise<INestApplication> {
  const testing = Test.createTestingModule({ imports: [AppModule] })
  return (await testing.overrideProvider(LLM).useValue(llm).compile()).createNestApplication({
    logger: false,
  })
}

describe('with the built-in model', () => {
  let llm: Llm
  let app: INestApplication

  beforeAll(async () => {
    llm = await createLlm()
    app = await (await createApp(llm)).init()
  })

  afterAll(async () => {
    await app.close()
    await llm.close() // The module closes only an Llm that it has created.
  })

  test('the chat route answers', async () => {
    const { body } = await request(app.getHttpServer())
      .post('/llm/v1/chat/completions')
      .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
      .expect(200)

    expect(body.choices[0].message.content).toBe('Hello! How can I help you?')
  })

  test('a controller of the app asks the model', async () => {
    const { body } = await request(app.getHttpServer()).get('/api/users/2/story').expect(200)

    expect(body).toEqual({ user: 'Grace', story: expect.stringContaining('Grace') })
  })
})

describe('with a script', () => {
  let engine: ScriptedEngine
  let llm: Llm
  let app: INestApplication
  let url: string

  beforeAll(async () => {
    engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
    llm = await createLlm({ engine })
    app = await createApp(llm)
    await app.listen(0, '127.0.0.1')
    url = await app.getUrl()
  })

  afterAll(async () => {
    await llm.close()
    await app.close()
  })

  test("the app's own routes answer", async () => {
    const server = app.getHttpServer()
    await request(server)
      .get('/api/users')
      .expect(200, [
        { id: 1, name: 'Ada' },
        { id: 2, name: 'Grace' },
      ])
    const { body } = await request(server).get('/api/users/3/story').expect(404)
    await request(server).get('/nowhere').expect(404)

    expect(body.message).toBe('no such user')
  })

  test.each([
    ['/api/users/1/story', {}],
    [
      '/llm/v1/chat/completions',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{ "model": "tiny", "messages": [{ "role": "user", "content": "Hi" }] }',
      },
    ],
  ])('the model stops when a client of %s disconnects', async (path, options) => {
    const client = new AbortController()
    const answer = fetch(url + path, { ...options, signal: client.signal })
    await expect.poll(() => engine.running).toBe(1)

    client.abort()

    await expect(answer).rejects.toThrow('aborted')
    await expect.poll(() => engine.running).toBe(0)
  })
})
