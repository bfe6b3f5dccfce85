/** Logs in as users of two customers, and calls the API with their keys. A script answers instead of a model. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { SignJWT } from 'jose'
import request from 'supertest'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'

const secret = crypto.getRandomValues(new Uint8Array(32))
let folder
let databases = 0
let engine
let llm
let app

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'saas-'))
})

afterAll(() => rm(folder, { recursive: true }))

beforeEach(() => start(scriptedEngine('Hello there.')))

async function start(scripted, price = 1) {
  engine = scripted
  const own = await createLlm({
    auth: 'keys',
    database: join(folder, `${databases++}.db`),
    engine,
    prices: { '*': { inputPerMillionUsd: price, outputPerMillionUsd: price } },
  })
  onTestFinished(() => own.close())
  llm = own
  app = createApp(llm, secret)
}

const login = async (customer, { plan = 'team', key = secret, issuer = 'my-site', expires = '1h' } = {}) => {
  const token = new SignJWT({ customer, plan }).setProtectedHeader({ alg: 'HS256' }).setSubject('ada')
  return `Bearer ${await token.setIssuer(issuer).setExpirationTime(expires).sign(key)}`
}

async function createKey(authorization, name = 'laptop') {
  const { body } = await request(app).post('/account/keys').set({ authorization }).send({ name }).expect(201)
  return body
}

const messages = [{ role: 'user', content: 'Hi' }]
const chat = (key) =>
  request(app)
    .post('/llm/v1/chat/completions')
    .set({ authorization: `Bearer ${key}` })
    .send({ model: 'tiny', max_tokens: 20, messages })

test('a user creates a key, and the API answers calls with it', async () => {
  const authorization = await login('acme')
  const { id, secret: key } = await createKey(authorization)

  const { body } = await chat(key).expect(200)
  const { body: listed } = await request(app).get('/account/keys').set({ authorization }).expect(200)

  expect(body.choices[0].message.content).toBe('Hello there.')
  expect(listed).toMatchObject([{ id, name: 'laptop' }])
  expect(JSON.stringify(listed)).not.toContain(key)
  await chat('sk-mm-wrong').expect(401)
  await request(app).post('/llm/v1/chat/completions').send({ model: 'tiny', messages }).expect(401)
})

test.each([
  ['no token', () => ''],
  ['a token of another secret', () => login('acme', { key: crypto.getRandomValues(new Uint8Array(32)) })],
  ['a token of another site', () => login('acme', { issuer: 'other' })],
  ['an expired token', () => login('acme', { expires: '-1m' })],
  ['an unknown plan', () => login('acme', { plan: 'constructor' })],
  ['a key of the API', async () => `Bearer ${(await llm.keys.create({ name: 'any' })).secret}`],
])('%s opens no account', async (_what, authorize) => {
  const authorization = await authorize()

  await request(app).get('/account/keys').set({ authorization }).expect(401)
  await request(app).get('/account/usage').set({ authorization }).expect(401)
})

test('customers neither see nor revoke the keys of others', async () => {
  const [acme, other] = [await login('acme'), await login('other')]
  const { id, secret: key } = await createKey(acme)

  const { body } = await request(app).get('/account/keys').set({ authorization: other }).expect(200)
  await request(app).delete(`/account/keys/${id}`).set({ authorization: other }).expect(404)

  expect(body).toEqual([])
  await chat(key).expect(200)
  await request(app).delete(`/account/keys/${id}`).set({ authorization: acme }).expect(204)
  await chat(key).expect(401)
})

test('a plan limits the number of keys and the calls per minute', async () => {
  const authorization = await login('acme', { plan: 'free' })
  const { secret: key } = await createKey(authorization)

  await request(app).post('/account/keys').set({ authorization }).send({ name: 'second' }).expect(409)
  for (let call = 0; call < 5; call++) await chat(key).expect(200)
  const { headers } = await chat(key).expect(429)

  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
})

test('a key that has spent its month gets no further answers', async () => {
  await start(scriptedEngine('Hello there.'), 46_000) // a dollar is 21 tokens
  const { secret: key } = await createKey(await login('acme', { plan: 'free' }))

  const { body } = await chat(key).expect(200)
  const { body: refused } = await chat(key).expect(429)

  expect(body.usage.total_tokens).toBeGreaterThan(0)
  expect(refused.error.code).toMatch(/quota|rate_limit/)
})

test('the usage page shows calls and costs of the own keys, and escapes their names', async () => {
  const [acme, other] = [await login('acme'), await login('other')]
  const { secret: key } = await createKey(acme, '<b>bold</b>')
  await createKey(other, 'hidden')
  await chat(key).expect(200)

  const { text } = await request(app).get('/account/usage').set({ authorization: acme }).expect(200)

  expect(text).toMatch(
    /<td>&lt;b&gt;bold&lt;\/b&gt;<\/td><td>1<\/td><td>[1-9]\d*<\/td><td>\$0\.0000\d+ of \$50\.00<\/td>/,
  )
  expect(text).not.toContain('hidden')
})

test('the model stops when a client disconnects', async () => {
  await start(scriptedEngine('word '.repeat(10_000), { delayMs: 2 }))
  const { secret: key } = await createKey(await login('acme'))
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = new AbortController()
  const answer = fetch(`http://127.0.0.1:${server.address().port}/llm/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'tiny', messages }),
    signal: client.signal,
  })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
})
