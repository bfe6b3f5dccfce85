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
  ['separate limits', { limits: { requestsPerMinute: 3 } }],
  ['the limits of a tier', { tier: 'free' }],
])("a key with %s has one bucket for the app's routes and for models", async (_source, settings) => {
  const { time, ask } = await start(settings)

  expect((await time()).headers.get('x-ratelimit-remaining-requests')).toBe('2')
  expect((await ask()).headers.get('x-ratelimit-remaining-requests')).toBe('1')
  expect((await time()).status).toBe(200)
  expect([(await time()).status, (await ask()).status]).toEqual([429, 429])
})

test('a key without limits gets the limits of the route, and no limits for models', async () => {
  const { time, ask } = await start({})

  expect([(await time()).status, (await time()).status, (await time()).status]).toEqual([200, 200, 429])
  expect((await ask()).status).toBe(200)
})

test('a rate-limited route of the host app answers 401 without a valid key', async () => {
  const { time } = await start({})

  const [none, wrong] = [await time({}), await time({ 'x-api-key': 'mm-wrong' })]

  expect([none.status, wrong.status]).toEqual([401, 401])
  expect(await none.json()).toEqual({ error: expect.stringContaining('API key required.') })
})
