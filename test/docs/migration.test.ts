/** Runs the code of the page about express-rate-limit. */
import { createRateLimiter } from '@modelmount/core/limits'
import { rateLimit } from '@modelmount/express'
import express from 'express'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'
import { codeBelow } from '../support/pages.ts'

test('a login counts failures only', async () => {
  const code = codeBelow('docs/migration/express-rate-limit.md', 'What to write instead').join('\n')
  const limiter = await createRateLimiter()
  onTestFinished(() => limiter.close())
  const app = express().use(express.json())
  const process = { env: { PASSWORD: 'right' } }
  new Function('app', 'limiter', 'rateLimit', 'process', code)(app, limiter, rateLimit, process)
  const statusOf = async (password: string): Promise<number> =>
    (await request(app).post('/login').send({ password })).status

  const statuses: number[] = []
  for (const password of [...Array(8).fill('right'), ...Array(6).fill('wrong')])
    statuses.push(await statusOf(password))

  expect(statuses).toEqual([...Array(8).fill(200), ...Array(5).fill(401), 429])
})
