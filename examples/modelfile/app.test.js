/** Asks the model of the Modelfile in process, and with Ollama's own client. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { Ollama } from 'ollama'
import request from 'supertest'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'

let models
let llm
let app
let server
let url

beforeAll(async () => {
  models = await mkdtemp(join(tmpdir(), 'modelfile-'))
  llm = await createLlm({ models })
  app = await createApp(llm)
  server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${server.address().port}`
})

afterAll(async () => {
  server.close()
  await llm.close()
  await rm(models, { recursive: true })
})

test('a route of the app asks the model of the Modelfile', async () => {
  const { body } = await request(app).get('/greeting').expect(200)

  expect(body.greeting).toContain('Bob')
})

test('a client of Ollama finds the model with the settings of the Modelfile', async () => {
  const client = new Ollama({ host: url })

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

test('the model stops when a client disconnects', async () => {
  const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
  const scripted = await createLlm({ models, engine })
  const endless = (await createApp(scripted)).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    endless.close()
    await scripted.close()
  })
  await once(endless, 'listening')
  const client = new AbortController()
  const answer = fetch(`http://127.0.0.1:${endless.address().port}/greeting`, { signal: client.signal })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
})
