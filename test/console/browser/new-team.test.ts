/**
 * The first day of a team, in a browser and with the real engine: log in by the printed link, create a key with a
 * spending limit, use it with the `openai` package, watch its call, see the bill, ask for a higher limit, approve it,
 * rotate and revoke.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from '../../support/chromium.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type ServedConsole, serveConsole } from '../../support/served-console.ts'

let server: ServedConsole
let browser: Browser
beforeAll(async () => {
  const data = emptyFolder()
  const prices = join(data, 'prices.json')
  writeFileSync(prices, JSON.stringify({ '*': { inputPerMillionUsd: 100, outputPerMillionUsd: 500 } }))
  server = await serveConsole(data, ['--prices', prices])
  browser = await launchChromium()
})
afterAll(async () => {
  await browser.close()
  await server.close()
})

const openPage = async (url: string): Promise<Page> => {
  const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.goto(url)
  return page
}
const goTo = (page: Page, name: string) => page.getByRole('navigation').getByRole('link', { name }).click()

test('a team starts, uses and limits its first key', { timeout: 120_000 }, async () => {
  const operator = await openPage(server.link)
  await operator.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(operator.url()).not.toContain('token')

  await goTo(operator, 'Keys')
  await operator.getByRole('link', { name: 'Create key' }).first().click()
  await operator.getByLabel('Name').fill('Support bot')
  await operator.getByLabel('Spending limit in dollars').fill('5')
  await operator.getByLabel('Requests per minute').first().fill('10')
  await operator.getByRole('button', { name: 'Create key' }).click()
  const created = operator.getByRole('dialog', { name: 'Key created' })
  const secret = (await created.locator('code').first().textContent()) ?? ''
  await created.getByRole('button', { name: 'Done' }).click()

  const base = server.url
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: secret, maxRetries: 0 })
  await goTo(operator, 'Live calls')
  await operator.getByText('No calls run now').waitFor()
  const answer = await client.chat.completions.create({
    model: 'tiny-chat',
    stream: true,
    max_tokens: 4_000,
    messages: [{ role: 'user', content: 'Count to five.' }],
    // Otherwise the model stops after a few words.
    logit_bias: { 0: -100, 1: -100, 2: -100 },
  })
  let text = ''
  const reading = (async () => {
    for await (const chunk of answer) text += chunk.choices[0]?.delta.content ?? ''
  })()
  // Fails below, perhaps before it is awaited.
  reading.catch(() => {})
  await expect.poll(() => text, { timeout: 10_000 }).not.toBe('')
  const row = operator.getByRole('table', { name: 'Running calls' }).getByRole('row', { name: /tiny-chat/ })
  await row.waitFor()
  expect(await row.textContent()).toContain('Support bot')
  await row.getByRole('button', { name: /Cancel the call/ }).click()
  await operator.getByRole('button', { name: 'Cancel call' }).click()
  await expect(reading).rejects.toThrow('An operator of this app has canceled the call.')

  await goTo(operator, 'Keys')
  await operator.getByRole('link', { name: 'Support bot' }).click()
  const page = operator.getByRole('main')
  const readBill = async (): Promise<string> => {
    await operator.reload()
    await page.getByText('of $5.00 per month').waitFor()
    return page.innerText()
  }
  await expect
    .poll(readBill, { timeout: 15_000, interval: 500 })
    .toMatch(/\$0\.0*[1-9]\d* of \$5\.00 per month/)

  const user = await openPage(`${base}/console/`)
  await user.getByLabel('API key').fill(secret)
  await user.getByRole('button', { name: 'Log in' }).click()
  await user.getByRole('heading', { name: 'My key' }).waitFor()
  await user.getByRole('button', { name: 'Ask for higher limits' }).click()
  await user.getByRole('dialog').getByLabel('Requests per minute').first().fill('100')
  await user
    .getByRole('dialog')
    .getByLabel(/Reason/)
    .fill('More customers')
  await user
    .getByRole('dialog')
    .getByRole('button', { name: /Send|Ask/ })
    .click()
  await user.getByText('Waiting').waitFor()

  await goTo(operator, 'Limits')
  await operator
    .getByRole('article', { name: 'Request of Support bot' })
    .getByRole('button', { name: 'Approve' })
    .click()
  await operator
    .getByRole('dialog')
    .getByRole('button', { name: /Approve/ })
    .click()
  await operator.getByText('No request is waiting').waitFor()

  await goTo(operator, 'Keys')
  await operator.getByRole('link', { name: 'Support bot' }).click()
  await operator.getByRole('button', { name: 'Rotate' }).click()
  await operator.getByRole('button', { name: 'Rotate key' }).click()
  const rotated = operator.getByRole('dialog', { name: 'Key rotated' })
  const next = (await rotated.locator('code').first().textContent()) ?? ''
  await rotated.getByRole('button', { name: 'Done' }).click()
  const hello = { model: 'tiny-chat', max_tokens: 5, messages: [{ role: 'user' as const, content: 'Hello' }] }
  for (const apiKey of [secret, next])
    expect((await client.withOptions({ apiKey }).chat.completions.create(hello)).choices).toHaveLength(1)

  await operator.getByRole('button', { name: 'Revoke' }).click()
  await operator.getByRole('button', { name: 'Revoke key' }).click()
  await operator.getByText('Revoked', { exact: true }).first().waitFor()
  await expect(client.withOptions({ apiKey: next }).chat.completions.create(hello)).rejects.toMatchObject({
    status: 401,
  })
  await user.reload()
  await user.getByRole('heading', { name: /Log in/ }).waitFor()

  await goTo(operator, 'Audit')
  for (const action of ['Revoke', 'Rotate', 'Approve', 'Create'])
    await operator
      .getByRole('cell', { name: new RegExp(action) })
      .first()
      .waitFor()
})
