import { createLlm, type Llm } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { LLM } from '@modelmount/nest'
import { type INestApplication, Logger } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
import { AppModule } from './src/app.module.ts'

Logger.overrideLogger(false)

describe.each<[what: string, engine: Engine | undefined, hello: string]>([
  ['the built-in model', undefined, 'Hello! How can I help you?'],
  ['a script', scriptedEngine('Grace went home.'), 'Grace went home.'],
])('with %s', (_what, engine, hello) => {
  const models = emptyFolder()
  let llm: Llm
  let app: INestApplication

  beforeAll(async () => {
    llm = await createLlm({ models, ...(engine && { engine }) })
    const testing = Test.createTestingModule({ imports: [AppModule] })
    app = (await testing.overrideProvider(LLM).useValue(llm).compile()).createNestApplication()
    await app.init()
  })

  afterAll(async () => {
    await app.close()
    await llm.close()
  })

  test('the chat route answers', async () => {
    const { body } = await request(app.getHttpServer())
      .post('/llm/v1/chat/completions')
      .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
      .expect(200)

    expect(body.choices[0].message.content).toBe(hello)
  })

  test("the app's own routes still answer", async () => {
    const { body } = await request(app.getHttpServer()).get('/api/users').expect(200)

    expect(body).toEqual([
      { id: 1, name: 'Ada' },
      { id: 2, name: 'Grace' },
    ])
  })

  test('a controller of the app asks the model', async () => {
    const { body } = await request(app.getHttpServer()).get('/api/users/2/story').expect(200)

    expect(body.user).toBe('Grace')
    expect(body.story).toContain('Grace')
  })

  test('an unknown path is answered by the app', async () => {
    const { body } = await request(app.getHttpServer()).get('/nowhere').expect(404)

    expect(body.message).toBe('Cannot GET /nowhere')
  })
})
