/** The pages of usage in a browser. */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test, vi } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

/** A name that is harmless only as text. See the incident D-13. */
const hostileName = '<img src=x onerror=document.title=1>'
const operator = { scopes: ['admin', 'inference'] } as const

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({ prices: { '*': { inputPerMillionUsd: 3, outputPerMillionUsd: 15 } } })
  for (const name of [hostileName, 'Build server']) {
    const { secret } = await app.llm.keys.create({ name })
    await app.llm.as(await app.llm.keys.authenticate(secret)).chat('Hello')
  }
  await vi.waitUntil(async () => (await app.llm.usage.report({ by: 'key' })).length === 2)
})

test('usage by key is exact to the nanodollar, and names are texts', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/usage' })
  const rows = await app.llm.usage.report({ by: 'key' })
  const usd = (nanoUsd: bigint): string => `$${(Number(nanoUsd) / 1e9).toFixed(9).replace(/0{1,7}$/, '')}`

  for (const { name = '', nanoUsd } of rows)
    await page.getByRole('row', { name }).getByText(usd(nanoUsd), { exact: true }).waitFor()
  await expectGood('usage')
  expect(await page.title()).toBe('Usage · Modelmount')
})

test('a viewer restricts usage to one key, and keeps the filter in the address', async () => {
  const { page, expectGood } = await app.open({
    key: operator,
    page: '#/usage',
    width: 360,
    colorScheme: 'dark',
  })

  await page.getByRole('button', { name: 'Show only Build server' }).click()
  await page.getByRole('button', { name: hostileName }).waitFor({ state: 'detached' })
  expect(await page.getByRole('table', { name: 'Usage by key' }).getByRole('row').count()).toBe(2)
  await page.reload()
  await page.getByRole('button', { name: 'Remove the filter Key: Build server' }).waitFor()
  await page.getByLabel('Group by').selectOption('Model')
  await page.getByRole('table', { name: 'Usage by model' }).waitFor()
  await expectGood('usage-narrow-dark')
})

test('the values of a chart are a table too', async () => {
  const { page } = await app.open({ key: operator, page: '#/usage' })

  await page.getByText('Show the values of Cost').click()
  const values = page.getByRole('region', { name: 'Values of Cost' })
  expect(await values.getByRole('row').count()).toBe(31)
})

test('a browser whose language is no valid tag shows the charts', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/models' })
  await page.addInitScript(
    "Object.defineProperty(navigator, 'language', { get: () => 'en-US@posix', configurable: true })",
  )
  await page.goto(`${app.url}#/usage`)
  await page.reload()

  await page.getByText('Show the values of Cost').waitFor()
  await expectGood('usage-posix')
})

test('the CSV file has the rows of the page', async () => {
  const { page } = await app.open({ key: operator, page: '#/usage?by=model' })

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download CSV' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('usage-by-model.csv')
  const [, ...lines] = readFileSync(await download.path(), 'utf8')
    .trim()
    .split(/\r?\n/)
  expect(lines).toHaveLength((await app.llm.usage.report({ by: 'model' })).length)
})
