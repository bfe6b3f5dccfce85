/** Tests the app with a script instead of a model. `npm test` runs it in Jest. */
import { createLlm, type Llm, LlmError } from '@modelmount/core'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { LLM } from '@modelmount/nest'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import request from 'supertest'

const tokens = { ada: 'token-of-ada-0000', grace: 'token-of-grace-00' }
process.env.API_TOKENS = `${tokens.ada}:ada:free,${tokens.grace}:grace:paid`

let engine: ScriptedEngine
let llm: Llm
let app: INestApplication
let url: string

async function start(script: Parameters<typeof scriptedEngine>[0], options = {}): Promise<void> {
  engine = scriptedEngine(script, options)
  llm = await createLlm({ auth: 'host', engine, tiers: { free: { requestsPerMinute: 5 }, paid: {} } })
  const { AppModule } = await import('./src/app.module.js')
  const testing = Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(LLM)
    .useValue(llm)
  app = (await testing.compile()).createNestApplication({ logger: false })
  await app.listen(0, '127.0.0.1')
  url = await app.getUrl()
}

afterEach(async () => {
  await llm.close()
  await app.close()
})

const summarize = (token: string, body: object = { text: 'A long text.' }) =>
  request(url)
    .post('/summaries')
    .set({ authorization: `Bearer ${token}` })
    .send(body)

const chat = (token: string) =>
  request(url)
    .post('/llm/v1/chat/completions')
    .set({ authorization: `Bearer ${token}` })
    .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] })

test('a user gets a summary and an answer of the routes of models', async () => {
  await start(({ format }) => (format ? '{"title":"A text","isPositive":true}' : 'Hello there.'))

  const { body } = await chat(tokens.grace).expect(200)

  await summarize(tokens.grace).expect(201, { title: 'A text', isPositive: true })
  expect(body.choices[0].message.content).toBe('Hello there.')
})

test('the guard rejects unknown tokens on all routes, but not health checks', async () => {
  await start('Hello there.')

  await summarize('wrong').expect(401)
  const { body } = await chat('wrong').expect(401)
  await request(url).get('/llm/v1/models').expect(401)
  await request(url).get('/readyz').expect(200)

  expect(body.error.message).toBe('unknown token')
  expect(engine.requests).toEqual([])
})

test('the limits of a user count calls of both kinds', async () => {
  await start(({ format }) => (format ? '{"title":"A text","isPositive":true}' : 'Hello there.'))
  for (let call = 0; call < 3; call++) await chat(tokens.ada).expect(200)
  for (let call = 0; call < 2; call++) await summarize(tokens.ada).expect(201)

  const { headers } = await summarize(tokens.ada).expect(429)
  await chat(tokens.ada).expect(429)

  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  await chat(tokens.grace).expect(200)
})

test('wrong bodies are 400, and errors of the model keep their status', async () => {
  await start(new LlmError('overloaded', 'The model is busy.'))

  await summarize(tokens.grace, {}).expect(400)
  const { body } = await summarize(tokens.grace).expect(503)

  expect(body).toEqual({ statusCode: 503, message: 'The model is busy.' })
})

test('the app does not start with wrong environment variables', async () => {
  await start('Hello there.')
  const { validateEnvironment } = await import('./src/environment.js')

  expect(() => validateEnvironment({ API_TOKENS: 'short:ada:free' })).toThrow('API_TOKENS')
  expect(() => validateEnvironment({ API_TOKENS: process.env.API_TOKENS, PORT: 'x' })).toThrow('PORT')
})

test('the model stops when a client disconnects', async () => {
  await start('word '.repeat(10_000), { delayMs: 2 })
  const running = async (count: number): Promise<void> => {
    while (engine.running !== count) await new Promise(setImmediate)
  }
  const client = new AbortController()
  const answer = fetch(`${url}/summaries`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokens.grace}`, 'content-type': 'application/json' },
    body: '{ "text": "A long text." }',
    signal: client.signal,
  }).catch((error: Error) => error.name)
  await running(1)

  client.abort()

  await running(0)
  expect(await answer).toBe('AbortError')
})
