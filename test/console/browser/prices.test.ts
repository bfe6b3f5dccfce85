/** Where the pages show prices, and warn about models without one. */
import { expect, test } from 'vitest'
import { startConsole } from '../../support/console.ts'

const operator = { scopes: ['admin', 'inference'] } as const

test('the pages warn that keys with a spending limit cannot use a model without a price', async () => {
  const app = await startConsole({ prices: { other: { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } } })
  const { page, expectGood } = await app.open({ key: operator, page: '#/keys/new' })
  const warning = page.getByText('cannot use models without a price: tiny:latest.')

  await page.getByLabel('Name').fill('Limited')
  await page.getByRole('link', { name: 'Usage' }).waitFor()
  expect(await warning.count()).toBe(0)
  await page.getByLabel('Spending limit in dollars').fill('5')
  await warning.waitFor()
  await page.getByText('--prices FILE of modelmount serve').waitFor()
  await expectGood('prices-new-key')
  // A key that cannot use the model needs no warning about it.
  await page.getByLabel('Models', { exact: true }).fill('other')
  await warning.waitFor({ state: 'detached' })

  await page.getByRole('link', { name: 'Models' }).click()
  await page.getByRole('cell', { name: 'No price' }).waitFor()
  await warning.waitFor()
  await expectGood('prices-models-missing')
  await page.getByRole('link', { name: 'Overview' }).click()
  await warning.waitFor()
  await expectGood('prices-overview')
})

test('the pages of models show their prices, on a phone too', async () => {
  const app = await startConsole({ prices: { tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 2.5 } } })
  const key = { scopes: ['admin', 'models', 'inference'] } as const
  const { page, expectGood } = await app.open({ key, page: '#/models' })

  for (const width of [1280, 920, 360]) {
    await page.setViewportSize({ width, height: 800 })
    await page.getByText('$1.00 in, $2.50 out').waitFor()
    await expectGood(`prices-models-${width}`)
  }
  await page.getByRole('link', { name: 'tiny:latest', exact: true }).click()
  await page.getByText('$1.00 input, $2.50 output, $0.10 from the cache').waitFor()
})

test('viewers who may not see prices see models without them', async () => {
  const app = await startConsole({ prices: {} })
  const { page } = await app.open({ key: { scopes: ['inference'] }, page: '#/models' })

  await page.getByRole('link', { name: 'tiny:latest', exact: true }).waitFor()
  expect(await page.getByText('price').count()).toBe(0)
})
