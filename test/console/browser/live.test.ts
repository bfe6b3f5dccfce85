/** The page of live calls in a browser. */
import { fleetEngine } from '@modelmount/core/fleet'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { pacedEngine } from '../../support/paced-engine.ts'
import { chatDelta, sendEvents, UpstreamServer } from '../../support/upstream-server.ts'

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

test('the replicas of a fleet are shown with their state and their last failure', async () => {
  const server = await UpstreamServer.start()
  server.answer = (response) =>
    void sendEvents(response, chatDelta({ content: 'Hi' }), chatDelta({}, 'stop'), 'data: [DONE]\n\n').end()
  const gone = await UpstreamServer.start()
  await gone.close()
  const fleet = fleetEngine({ replicas: [server.url, gone.url], health: false, models: ['small'] })
  const fleetApp = await startConsole({ engines: { gpu: fleet } })
  for (let count = 0; count < 4; count++) await fleetApp.llm.chat(`Hello ${count}`, { model: 'gpu/small' })
  const { page, expectGood } = await fleetApp.open({ key: operator, page: '#/live' })

  const replicas = page.getByRole('table', { name: 'Replicas' })
  await replicas.getByText('Ejected').waitFor()
  expect(await replicas.getByText('unreachable').count()).toBe(1)
  expect(await replicas.getByRole('row').count()).toBe(3)
  await expectGood('live-replicas')
  await server.close()
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
