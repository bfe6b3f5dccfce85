/** Asking for higher limits, deciding about them, and the audit log, in browsers of both sides. */
import { beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({ tiers: { free: { requestsPerMinute: 20 } } })
})

test('a user asks for a higher limit, an operator approves it with a note, and the user reads the note', async () => {
  const user = await app.open({ key: { name: 'Bob', tier: 'free' } })
  const operator = await app.open({ key: { name: 'Ada', scopes: ['admin'] }, page: '#/overview' })
  for (const { page } of [user, operator]) {
    await page.clock.install()
    await page.reload()
  }

  await user.page.getByRole('button', { name: 'Ask for higher limits' }).click()
  const form = user.page.getByRole('dialog', { name: 'Ask for higher limits' })
  await form.getByText('Now 20.').waitFor()
  expect(await form.getByLabel('Tokens per minute').count()).toBe(0)
  await form.getByLabel('Requests per minute').fill('100')
  await form.getByLabel('Reason').fill('Nightly builds')
  await user.expectGood('limits-ask')
  await form.getByRole('button', { name: 'Send request' }).click()
  await user.page.getByText('A request is pending.').waitFor()

  await operator.page.getByText('Needs attention').waitFor()
  await operator.page.clock.runFor(15_000)
  await operator.page.getByText('1 request for higher limits waits for a decision.').waitFor()
  await operator.page.getByRole('link', { name: 'Limits 1 pending request' }).click()
  await operator.page.getByText('Requests per minute: from 20 to 100').waitFor()
  await operator.expectGood('limits')
  await operator.page.getByRole('button', { name: 'Approve' }).click()
  await operator.page.getByLabel('Note').fill('Until the end of the year')
  await operator.expectGood('limits-approve')
  await operator.page.getByRole('button', { name: 'Approve request' }).click()
  await operator.page.getByText('No request is waiting').waitFor()
  expect(await operator.page.getByRole('link', { name: 'Limits', exact: true }).count()).toBe(1)

  await user.page.clock.runFor(15_000)
  await user.page.getByText('Until the end of the year').waitFor()
  await user.page.getByText('of 100 left').waitFor()
  await user.expectGood('my-key')
})

test('a user asks for more money, and an approval keeps what was raised meanwhile', async () => {
  const user = await app.open({
    key: {
      ...{ name: 'Mallory', limits: { tokensPerDay: 1_000 } },
      spendingLimit: { usd: 5, period: 'day' },
    },
  })
  const { id } = await app.llm.keys.authenticate(user.secret)
  await user.page.getByRole('button', { name: 'Ask for higher limits' }).click()
  const form = user.page.getByRole('dialog', { name: 'Ask for higher limits' })
  await form.getByText('Now $5.00 per day.').waitFor()
  await form.getByLabel('Spending limit in dollars').fill('100')
  await form.getByLabel('Period').selectOption('month')
  await form.getByLabel('Tokens per day').fill('2000')
  await form.getByRole('button', { name: 'Send request' }).click()
  await form.getByText('$100 per month would be lower than the present limit of $5 per day.').waitFor()
  await user.expectGood('limits-ask-lower')
  await form.getByLabel('Spending limit in dollars').fill('200')
  await form.getByRole('button', { name: 'Send request' }).click()
  await user.page.getByText('Spending limit: $200.00 per month').waitFor()

  await app.llm.keys.update(id, { limits: { tokensPerDay: 3_000 } })
  const operator = await app.open({ key: { scopes: ['admin'] }, page: '#/limits' })
  const { page } = operator
  await page.getByText('Spending limit: from $5.00 per day to $200.00 per month').waitFor()
  await page.getByRole('button', { name: 'Approve' }).click()
  const dialog = page.getByRole('dialog', { name: 'Approve the request?' })
  await dialog.getByText('Tokens per day: stays at 3,000 (higher than the requested 2,000 by now)').waitFor()
  await operator.expectGood('limits-approve-raised')
  await dialog.getByRole('button', { name: 'Approve request' }).click()
  await page.getByText('No request is waiting').waitFor()

  expect(await app.llm.keys.get(id)).toMatchObject({
    limits: { tokensPerDay: 3_000 },
    spendingLimit: { usd: 200, period: 'month' },
  })
})

test('a key without limits has nothing to ask for', async () => {
  const { page } = await app.open({ key: { name: 'Free' } })

  await page.getByText('This key has no limits that could be raised.').waitFor()
})

test('an operator refuses a request, and the limits stay', async () => {
  const { key } = await app.llm.keys.create({ name: 'Eve', limits: { concurrent: 1 } })
  await app.llm.keys.requests.create({ key: { id: key.id, name: key.name } }, { limits: { concurrent: 50 } })
  const { page } = await app.open({ key: { scopes: ['admin'] }, page: '#/limits' })

  await page.getByRole('button', { name: 'Refuse' }).click()
  await page.getByRole('button', { name: 'Refuse request' }).click()
  await page.getByText('No request is waiting').waitFor()

  expect((await app.llm.keys.get(key.id)).limits).toEqual({ concurrent: 1 })
})

test('the audit log shows who has changed what', async () => {
  const { page, expectGood } = await app.open({
    key: { name: 'Grace', scopes: ['admin'] },
    page: '#/keys/new',
    width: 360,
  })
  await page.getByLabel('Name').fill('Audited')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Done' }).click()

  await page.goto(`${app.url}#/audit?action=createKey`)
  await page.getByRole('link', { name: 'Grace' }).waitFor()
  await expectGood('audit-narrow')
  await page.getByRole('button', { name: 'Show details' }).first().click()

  expect(await page.getByRole('dialog', { name: 'Create key' }).locator('pre').textContent()).toContain(
    '"Audited"',
  )
  await expectGood('audit-entry-narrow')
})
