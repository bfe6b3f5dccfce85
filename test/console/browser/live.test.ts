/** The page of live calls in a browser. */
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { pacedEngine } from '../../support/paced-engine.ts'

const operator = { scopes: ['admin', 'inference'] } as const
const engine = pacedEngine(scriptedEngine('Hello there.'))

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({ engine })
})
afterAll(() => engine.allow(Number.POSITIVE_INFINITY))

test('a call appears while it runs, and an operator cancels it', async () => {
  const { secret } = await app.llm.keys.create({ name: '<img src=x onerror=document.title=1>' })
  const caller = await app.llm.keys.authenticate(secret)
  const { page, expectGood } = await app.open({ key: operator, page: '#/live' })
  await page.getByText('No calls run now').waitFor()
  await expectGood('live-empty')

  const outcome = app.llm
    .as(caller)
    .chat('Hello')
    .then(
      () => 'answered',
      () => 'canceled',
    )
  await page.getByRole('link', { name: '<img src=x onerror=document.title=1>' }).waitFor()
  await expectGood('live')
  await page.getByRole('button', { name: /^Cancel the call/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel call' }).click()
  await page.getByText('Call canceled.').waitFor()
  await page.getByText('No calls run now').waitFor()
  expect(await outcome).toBe('canceled')
})

test('viewers without the scope admin cannot cancel a call', async () => {
  const stop = new AbortController()
  const outcome = app.llm.chat('Hello', { signal: stop.signal }).catch(() => {})
  const { page, expectGood } = await app.open({
    ...{ key: { scopes: ['admin:read'] }, page: '#/live', width: 360 },
    colorScheme: 'dark',
  })

  await page.getByText('The app itself').waitFor()
  await expectGood('live-narrow-dark')
  expect(await page.getByRole('button', { name: /Cancel/ }).count()).toBe(0)
  stop.abort()
  await outcome
})
