import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { LLM } from '@modelmount/nest'
import { type INestApplication, Logger } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AppModule } from './src/app.module.ts'

Logger.overrideLogger(false)

describe('with the built-in model', () => {
  let app: INestApplication

  beforeAll(async () => {
    const testing = await Test.createTestingModule({ imports: [AppModule] }).compile()
    app = await testing.createNestApplication().init()
  })

  afterAll(() => app.close())

  test('the chat route answers', async () => {
    const { body } = await request(app.getHttpServer())
      .post('/v1/chat/completions')
      .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
      .expect(200)

    expect(body.choices[0].message.content).toBe('Hello! How can I help you?')
  })

  test('the routes of the app are still its own', async () => {
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

describe('without a model', () => {
  test('a controller tells the story that the script has', async () => {
    const engine = scriptedEngine('Grace went home.')
    const testing = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(LLM)
      .useValue(await createLlm({ engine }))
      .compile()
    const app = await testing.createNestApplication().init()

    const { body } = await request(app.getHttpServer()).get('/api/users/2/story').expect(200)
    await app.close()

    expect(body).toEqual({ user: 'Grace', story: 'Grace went home.' })
    expect(engine.requests).toHaveLength(1)
  })
})
