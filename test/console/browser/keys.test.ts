/** The pages of keys in a browser. */
import { beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({
    prices: { '*': { inputPerMillionUsd: 3, outputPerMillionUsd: 15 } },
    tiers: { free: { requestsPerMinute: 20 } },
  })
})

const operator = { scopes: ['admin', 'inference'] } as const

test('an operator creates a key, and its secret is shown once', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/keys/new' })

  await page.getByLabel('Name').fill('Build server')
  await page.getByLabel('Spending limit in dollars').fill('12.5')
  await page.getByLabel('Tier').selectOption('free')
  await page.getByLabel('Tokens per day').fill('10,000')
  await page.getByLabel('Expires').selectOption('In 30 days')
  await expectGood('keys-new')
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog', { name: 'Key created' })
  const secret = (await dialog.locator('code').first().textContent()) ?? ''
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  expect(await dialog.isVisible()).toBe(true)
  await dialog.getByText(`logs in to this console at ${app.url}`).waitFor()
  await expectGood('keys-created')
  const [code] = await Promise.all([
    page.waitForEvent('popup'),
    dialog.getByRole('link', { name: 'Show the code of a first call' }).click(),
  ])
  expect(await code.getByRole('region', { name: 'Code for openai' }).textContent()).toContain('tiny:latest')
  await code.close()
  await dialog.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('heading', { name: 'Build server' }).waitFor()

  expect(await app.llm.keys.authenticate(secret)).toMatchObject({
    tier: 'free',
    limits: { tokensPerDay: 10_000 },
    spendingLimit: { usd: 12.5, period: 'month' },
  })
  expect(await page.content()).not.toContain(secret)
})

test('a key shows its settings, spending, limits and usage, on a phone in the dark too', async () => {
  const { key, secret } = await app.llm.keys.create({
    name: 'Nightly',
    limits: { requestsPerMinute: 10 },
    spendingLimit: { usd: 1, period: 'day' },
  })
  const caller = await app.llm.keys.authenticate(secret)
  await app.llm.as(caller).chat('Hello')
  await expect.poll(async () => (await app.llm.usage.report({ by: 'key' })).length).toBeGreaterThan(0)
  const page = `#/keys/${key.id}`
  const wide = await app.open({ key: operator, page })
  const narrow = await app.open({ key: operator, page, width: 360, colorScheme: 'dark' })

  for (const [name, viewer] of Object.entries({ 'key-wide': wide, 'key-narrow-dark': narrow })) {
    await viewer.page.getByRole('meter', { name: 'Spending of Nightly' }).waitFor()
    await viewer.page.getByRole('meter', { name: 'Requests per minute' }).waitFor()
    await viewer.page.getByText('Cost per day', { exact: true }).waitFor()
    await viewer.expectGood(name)
  }
})

test('rotating a key keeps its previous secret for the chosen time', async () => {
  const { key, secret } = await app.llm.keys.create({ name: 'Rotated' })
  const { page, expectGood } = await app.open({ key: operator, page: `#/keys/${key.id}` })

  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByLabel('Previous secrets stay valid').selectOption('They stop at once')
  await expectGood('keys-rotate')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  const next =
    (await page.getByRole('dialog', { name: 'Key rotated' }).locator('code').first().textContent()) ?? ''

  expect(await app.llm.keys.authenticate(next)).toMatchObject({ id: key.id })
  await expect(app.llm.keys.authenticate(secret)).rejects.toMatchObject({ code: 'authentication' })
  await page.getByText('Previous secrets are not valid any more.').waitFor()
})

test('a rotated key says until when its previous secret is valid, also to its holder', async () => {
  const holder = await app.open({ key: { name: 'Shared' }, page: '#/my-key' })
  const { id } = await app.llm.keys.authenticate(holder.secret)
  const { page, expectGood } = await app.open({ key: operator, page: `#/keys/${id}` })

  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByRole('button', { name: 'Rotate key' }).click()
  const dialog = page.getByRole('dialog', { name: 'Key rotated' })
  await dialog.getByText(/Previous secrets stay valid until \w/).waitFor()
  await expectGood('keys-rotated')
  await dialog.getByRole('button', { name: 'Done' }).click()
  await page.getByText('Previous secret valid until').waitFor()
  await expectGood('key-rotated')
  await holder.page.reload()
  await holder.page.getByText('Previous secret valid until').waitFor()

  await page.getByRole('button', { name: 'Expire previous secrets' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Expire previous secrets' }).click()
  await page.getByText('Previous secret valid until').waitFor({ state: 'detached' })
  await expect(app.llm.keys.authenticate(holder.secret)).rejects.toMatchObject({ code: 'authentication' })
})

test('revoking a key asks first', async () => {
  const { key } = await app.llm.keys.create({ name: 'Leaked' })
  const { page, expectGood } = await app.open({ key: operator, page: `#/keys/${key.id}` })
  const statusOf = async () => (await app.llm.keys.get(key.id)).status

  await page.getByRole('button', { name: 'Revoke' }).click()
  await expectGood('keys-revoke')
  await page.getByRole('button', { name: 'Cancel' }).click()
  expect(await statusOf()).toBe('active')
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('button', { name: 'Revoke key' }).click()

  await page.getByRole('status').getByText('Key revoked.').waitFor()
  expect(await statusOf()).toBe('revoked')
  await expect.poll(() => page.getByRole('button', { name: 'Rotate' }).count()).toBe(0)
})

test('editing a key changes what the form changes, and names the field that the server rejects', async () => {
  const { key } = await app.llm.keys.create({ name: 'Old name', tier: 'free', limits: { concurrent: 3 } })
  const { page } = await app.open({ key: operator, page: `#/keys/${key.id}/edit` })

  await page.getByLabel('Tokens per day').fill('999999999999')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('expected number to be <=100000000').waitFor()
  expect(await page.getByLabel('Tokens per day').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Tokens per day').fill('')
  await page.getByLabel('Name').fill('New name')
  await page.getByLabel('Tier').selectOption('None')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'New name' }).waitFor()

  const { name, tier, limits } = await app.llm.keys.get(key.id)
  expect({ name, tier, limits }).toEqual({ name: 'New name', tier: undefined, limits: { concurrent: 3 } })
})

test('searching finds a key among others by a part of its name', async () => {
  await app.llm.keys.create({ name: 'Needle in a haystack' })
  const { page, expectGood } = await app.open({ key: operator, page: '#/keys' })

  await page.getByLabel('Search').fill('in a hay')

  await expect.poll(() => page.getByRole('row').count()).toBe(2)
  await page.getByRole('link', { name: 'Needle in a haystack' }).waitFor()
  await expectGood('keys-search')
})

test('a name with markup is shown as text', async () => {
  const name = '<img src=x onerror="document.title=1">'
  const { key } = await app.llm.keys.create({ name })
  const { page, expectGood } = await app.open({ key: operator, page: `#/keys/${key.id}` })

  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe(name)
  await expect.poll(() => page.title()).toContain(name)
  await expectGood('keys-markup')
})

test('a viewer without the scope admin changes nothing', async () => {
  const { key } = await app.llm.keys.create({ name: 'Fixed' })
  const { page } = await app.open({ key: { scopes: ['admin:read'] }, page: `#/keys/${key.id}` })
  await page.getByRole('heading', { name: 'Fixed' }).waitFor()

  expect(
    await page
      .getByRole('main')
      .getByRole('button', { name: /Rotate|Revoke/ })
      .count(),
  ).toBe(0)
  expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0)
})
