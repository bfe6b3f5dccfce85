/** Limits of API keys on routes of the host app. */
import { createLlm, type KeySettings } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter, rateLimit } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

async function start(settings: Omit<KeySettings, 'name'>) {
  const llm = await createLlm({
    engine: scriptedEngine('Hello.'),
    models: emptyFolder(),
    auth: 'keys',
    database: ':memory:',
    tiers: { free: { requestsPerMinute: 3 } },
  })
  const byKey = rateLimit(llm.limits, { keyGenerator: llm.apiKeyGenerator, limits: { requestsPerMinute: 2 } })
  const app = express()
    .get('/time', byKey, (_req, res) => void res.send('now'))
    .use(llmRouter(llm))
  const { url, close } = await listen(app)
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const { secret } = await llm.keys.create({ name: 'ann', ...settings })
  const time = (headers: Record<string, string> = { authorization: `Bearer ${secret}` }) =>
    fetch(`${url}/time`, { headers })
  const ask = () =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-api-key': secret, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }),
    })
  return { time, ask }
}

test.each([
  ['limits of its own', { limits: { requestsPerMinute: 3 } }],
  ['those of its tier', { tier: 'free' }],
])('a key with %s spends them on routes and models together', async (_whose, settings) => {
  const { time, ask } = await start(settings)

  expect((await time()).headers.get('x-ratelimit-remaining-requests')).toBe('2')
  expect((await ask()).headers.get('x-ratelimit-remaining-requests')).toBe('1')
  expect((await time()).status).toBe(200)
  expect([(await time()).status, (await ask()).status]).toEqual([429, 429])
})

test('a key without limits has the limits of the route, and none for models', async () => {
  const { time, ask } = await start({})

  expect([(await time()).status, (await time()).status, (await time()).status]).toEqual([200, 200, 429])
  expect((await ask()).status).toBe(200)
})

test('a route answers 401 without a valid key', async () => {
  const { time } = await start({})

  const [none, wrong] = [await time({}), await time({ 'x-api-key': 'mm-wrong' })]

  expect([none.status, wrong.status]).toEqual([401, 401])
  expect(await none.json()).toEqual({ error: expect.stringContaining('API key required.') })
})
