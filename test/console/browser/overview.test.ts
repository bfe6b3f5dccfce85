/** The overview in a browser. */
import { LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

const operator = { scopes: ['admin', 'inference'] } as const
const calls = 25

let app: ConsoleApp
beforeAll(async () => {
  let count = 0
  app = await startConsole({
    // The first three calls fail.
    engine: scriptedEngine(() =>
      ++count <= 3 ? new LlmError('upstream', 'The engine has failed.') : 'Hello there.',
    ),
    prices: { '*': { inputPerMillionUsd: 3, outputPerMillionUsd: 15 } },
  })
})

test('an app without calls says what to do', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/overview' })

  await page.getByText('No calls in the last 24 hours').waitFor()
  await page.getByText('Nothing. Errors').waitFor()
  await expectGood('overview-empty')
  await page.getByRole('link', { name: 'Open the playground' }).waitFor()
})

test('calls appear by model and by key, and what has failed needs attention', async () => {
  const { secret } = await app.llm.keys.create({
    name: 'Build server',
    expiresAt: new Date(Date.now() + 86_400_000),
    spendingLimit: { usd: 0.0001, period: 'month' },
  })
  const caller = app.llm.as(await app.llm.keys.authenticate(secret))
  for (let call = 0; call < calls; call++) await caller.chat('Hello').catch(() => {})
  const { page, expectGood } = await app.open({ key: operator, page: '#/overview' })
  // Each process writes its counts every 2 s.
  await expect.poll(() => countCalls(page), { timeout: 10_000, interval: 200 }).toBe(calls)
  await page.reload()

  await page.getByText(/% of the calls to \S+ failed/).waitFor()
  await page.getByText('Build server expires in a day.').waitFor()
  await page.getByText(/Build server has spent .* of its limit/).waitFor()
  await page.getByText('Show the values of Calls').waitFor()
  await expectGood('overview')
  await page.getByRole('button', { name: 'Show only Build server' }).click()
  await page.getByRole('button', { name: 'Remove the filter Key: Build server' }).waitFor()
})

async function countCalls(page: Page): Promise<number> {
  const response = await page.request.get(`${app.url}admin/traffic`)
  const { data } = (await response.json()) as { data: readonly { calls: number }[] }
  return data.reduce((sum, row) => sum + row.calls, 0)
}

test.each([
  ['model', '7d'],
  ['key', '30d'],
])('charts by %s of %s fit a phone in the dark', async (by, range) => {
  const { page, expectGood } = await app.open({
    key: operator,
    page: `#/overview?by=${by}&range=${range}`,
    width: 360,
    colorScheme: 'dark',
  })

  await page.getByText('Show the values of Duration, 95th percentile').waitFor()
  await expectGood(`overview-by-${by}`)
})
