/** Tests the limits with a clock that the tests set. */
import { createRateLimiter } from '@modelmount/core/limits'
import request from 'supertest'
import { beforeEach, expect, test } from 'vitest'
import { createApp } from './app.js'

const clock = { now: 0 }
let app

beforeEach(async () => {
  const limiter = await createRateLimiter({ limits: { requestsPerMinute: 30 }, now: () => clock.now })
  app = createApp(limiter)
})

const summarise = (user, words) =>
  request(app).post('/summaries').set('x-user', user).type('text/plain').send('word '.repeat(words).trim())

test('an address gets 30 requests, and one more after `retry-after`', async () => {
  for (let call = 0; call < 30; call++) await request(app).get('/time').expect(200)

  const { headers } = await request(app).get('/time').expect(429)
  clock.now += 1_000 * Number(headers['retry-after'])
  await request(app).get('/time').expect(200)

  expect(headers['retry-after']).toBe('2')
})

test('each user is charged for the words of their own summaries', async () => {
  const { body } = await summarise('ada', 900).expect(200)
  const { headers } = await summarise('ada', 900).expect(200)

  expect(body).toEqual({ summary: 'word word word word word' })
  expect(headers['x-ratelimit-remaining-tokens']).toBe('95')
  await summarise('grace', 1_000).expect(200)
})

test('summaries without a user do not count on other routes of the address', async () => {
  for (let call = 0; call < 10; call++) await summarise('', 1).expect(200)
  await summarise('', 1).expect(429)

  const { headers } = await request(app).get('/time').expect(200)

  expect(headers['x-ratelimit-remaining-requests']).toBe('29')
})
