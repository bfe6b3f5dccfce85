import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { createApp } from './app.js'

let llm

beforeAll(async () => {
  llm = await createLlm({ engine: scriptedEngine('Hello there.') })
})

afterAll(() => llm.close())

test('a route of the app asks the model', async () => {
  const { body } = await request(createApp(llm)).get('/story')

  expect(body).toEqual({ text: 'Hello there.' })
})

test('the chat route answers', async () => {
  const { body } = await request(createApp(llm))
    .post('/llm/v1/chat/completions')
    .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] })

  expect(body.choices[0].message.content).toBe('Hello there.')
})
