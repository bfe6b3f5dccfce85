import request from 'supertest'
import { afterAll, expect, test } from 'vitest'
// @ts-expect-error The example is plain JavaScript, as its reader may be.
import { app, llm } from './server.js'

const server = app.callback()

afterAll(() => llm.close())

test('the chat route answers from the built-in model', async () => {
  const { body } = await request(server)
    .post('/v1/chat/completions')
    .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
    .expect(200)

  expect(body.choices[0].message.content).toBe('Hello! How can I help you?')
})

test('the routes of the app are still its own', async () => {
  const { body } = await request(server).get('/api/users').expect(200)

  expect(body).toEqual([
    { id: 1, name: 'Ada' },
    { id: 2, name: 'Grace' },
  ])
})

test('a route of the app asks the model', async () => {
  const { body } = await request(server).get('/api/users/2/story').expect(200)

  expect(body.user).toBe('Grace')
  expect(body.story).toContain('Grace')
})

test('an unknown path falls through to the app', async () => {
  await request(server).get('/api/users/3/story').expect(404, 'no such user')
  await request(server).get('/nowhere').expect(404, 'Not Found')
})
