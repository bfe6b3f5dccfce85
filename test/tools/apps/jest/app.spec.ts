import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { LLM } from '@modelmount/nest'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import request from 'supertest'
import { AppModule } from './app.module.js'

let llm: Llm
let app: INestApplication

beforeAll(async () => {
  llm = await createLlm({ engine: scriptedEngine('Once upon a time.') })
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(LLM)
    .useValue(llm)
    .compile()
  app = module.createNestApplication()
  await app.init()
})

afterAll(async () => {
  await app.close()
  await llm.close() // the module closes only an Llm that it has created
})

test('a controller of the app asks the model', async () => {
  const { body } = await request(app.getHttpServer()).get('/stories')

  expect(body).toEqual({ text: 'Once upon a time.' })
})

test('the chat route answers', async () => {
  const { body } = await request(app.getHttpServer())
    .post('/llm/v1/chat/completions')
    .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] })

  expect(body.choices[0].message.content).toBe('Once upon a time.')
})
