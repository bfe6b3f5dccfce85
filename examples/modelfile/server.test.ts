import { createLlm, type Llm } from '@modelmount/core'
import type { Express } from 'express'
import { Ollama } from 'ollama'
import request from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
import { type Listening, listen } from '../../test/support/listen.ts'
// @ts-expect-error The example is plain JavaScript, without types.
import { createApp } from './server.js'

const models = emptyFolder()
let llm: Llm
let app: Express
let server: Listening

beforeAll(async () => {
  llm = await createLlm({ models })
  app = await createApp(llm)
  server = await listen(app)
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

test('a route of the app asks the model of the Modelfile', async () => {
  const { body } = await request(app).get('/greeting').expect(200)

  expect(body.greeting).toContain('Bob')
})

test('a client of Ollama finds the model with the settings of the Modelfile', async () => {
  const client = new Ollama({ host: server.url })

  const { models: listed } = await client.list()
  const shown = await client.show({ model: 'bob' })
  const { message } = await client.chat({
    model: 'bob',
    messages: [{ role: 'user', content: 'Who are you?' }],
    think: false,
  })

  expect(listed.map(({ name }) => name)).toContain('bob:latest')
  expect(shown).toMatchObject({ system: 'You are Bob.', details: { parent_model: 'tiny:latest' } })
  expect(message.content).toContain('Bob')
})

test('an app that starts again creates the model again', async () => {
  const again = await createApp(llm)

  await request(again).get('/greeting').expect(200)
  expect((await llm.models.list()).filter(({ name }) => name === 'bob:latest')).toHaveLength(1)
})
