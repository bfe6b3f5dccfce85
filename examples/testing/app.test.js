/** Vitest and supertest, with a script instead of a model: fast, and the answers are always the same. */
import { once } from 'node:events'
import { createLlm, LlmError } from '@modelmount/core'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'

async function start(script, options) {
  const engine = scriptedEngine(script, options)
  const llm = await createLlm({ engine })
  onTestFinished(() => llm.close())
  return { app: createApp(llm), engine }
}

test('a text: the route returns it, and the engine lists the request', async () => {
  const { app, engine } = await start('Ada went home.')

  await request(app).get('/stories/Ada').expect(200, { story: 'Ada went home.' })

  expect(engine.requests).toMatchObject([
    { maxTokens: 100, input: { kind: 'chat', messages: [{ role: 'user' }] } },
  ])
  expect(JSON.stringify(engine.requests[0].input)).toContain('Tell me a short story about Ada.')
})

test('a function: the answer depends on the request', async () => {
  const { app } = await start(({ input }) =>
    JSON.stringify(input.messages).includes('Grace') ? 'A story.' : 'Another story.',
  )

  await request(app).get('/stories/Grace').expect(200, { story: 'A story.' })
  await request(app).get('/stories/Ada').expect(200, { story: 'Another story.' })
})

test('pieces: a stream has one event for each', async () => {
  const { app } = await start(['Hel', 'lo.'])

  const { text } = await request(app)
    .post('/llm/v1/chat/completions')
    .send({ model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    .buffer(true)
    .expect(200)

  const pieces = []
  for await (const { data } of readEvents(text))
    if (data !== '[DONE]') pieces.push(JSON.parse(data).choices[0]?.delta.content)
  expect(pieces.filter(Boolean)).toEqual(['Hel', 'lo.'])
})

test('an error: the route returns its status', async () => {
  const { app } = await start(new LlmError('overloaded', 'The model is busy.'))

  await request(app).get('/stories/Ada').expect(503, { error: 'The model is busy.' })
})

test('an error in the middle: clients of a stream get it as its last event', async () => {
  const { app } = await start(['Hel', new LlmError('upstream', 'The model is gone.')])

  const { text } = await request(app)
    .post('/llm/v1/chat/completions')
    .send({ model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    .buffer(true)
    .expect(200)

  expect(text).toContain('"Hel"')
  expect(text).toContain('The model is gone.')
})

test('an endless answer: the model stops when the client disconnects', async () => {
  const { app, engine } = await start('word '.repeat(10_000), { delayMs: 2 })
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = new AbortController()
  const answer = fetch(`http://127.0.0.1:${server.address().port}/stories/Ada`, { signal: client.signal })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
})
