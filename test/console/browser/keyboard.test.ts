/** A viewer without a mouse, on a phone in the dark, and the login of the host app. */
import { beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({ tiers: { team: { requestsPerMinute: 60 } } })
})

test('a key is created, found and revoked with the keyboard alone', async () => {
  const { page, expectGood } = await app.open({
    key: { name: 'Grace', scopes: ['admin', 'inference'] },
    page: '#/keys',
  })
  /** Presses Tab until an element with this name has the focus. */
  const tabTo = async (name: string): Promise<void> => {
    for (let count = 0; count < 60; count++) {
      await page.keyboard.press('Tab')
      const focused = await page.evaluate(
        `(() => {
           const { activeElement: at } = document
           const label = at.labels?.[0]?.textContent ?? at.getAttribute('aria-label') ?? at.textContent
           return label.trim()
         })()`,
      )
      if (focused === name) return
    }
    throw new Error(`No element with the name ${name} can be reached.`)
  }

  await page.getByRole('cell', { name: 'Grace' }).waitFor()
  await tabTo('Create key')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Create key' }).waitFor()
  await tabTo('Name')
  await page.keyboard.type('By keyboard')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Key created' }).waitFor()
  await tabTo('Done')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'By keyboard' }).waitFor()
  await tabTo('Revoke')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await tabTo('Revoke key')
  await page.keyboard.press('Enter')
  await page.getByText('Revoked', { exact: true }).first().waitFor()
  await expectGood('keyboard')

  const [key] = await app.llm.keys.list({ search: 'By keyboard' })
  expect(key?.status).toBe('revoked')
})

test.each([
  'keys',
  'limits',
  'audit',
  'my-key',
  'playground',
  'live',
  'overview',
  'usage',
  'models',
  'batches',
])('the page %s is good on a phone in the dark', async (name) => {
  const { page, expectGood } = await app.open({
    key: { scopes: ['admin', 'models', 'inference'], spendingLimit: { usd: 5, period: 'day' } },
    page: `#/${name}`,
    width: 360,
    colorScheme: 'dark',
  })

  await page.waitForLoadState('networkidle').catch(() => {})
  await expectGood(`phone-${name}`)
})
