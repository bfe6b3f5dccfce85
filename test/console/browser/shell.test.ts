/** The shell of the console in a browser: logging in and out, navigation, and what each viewer sees. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole()
})

describe('logging in', () => {
  test('a viewer logs in with a key, which no storage of the browser keeps', async () => {
    const { secret } = await app.llm.keys.create({ name: 'Ada', scopes: ['admin', 'inference'] })
    const { page, expectGood } = await app.open({ page: '#/keys' })
    await expectGood('login')

    await page.getByLabel('API key').fill(secret)
    await page.getByRole('button', { name: 'Log in' }).click()
    // The address that the viewer came for.
    await page.getByRole('heading', { name: 'Keys' }).waitFor()

    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    )
    expect(kept).toBe('[{},{},""]')
    expect(await page.content()).not.toContain(secret)
  })

  test('a wrong key is refused with a message', async () => {
    const { page, expectGood } = await app.open({ colorScheme: 'dark', width: 360 })

    await page.getByLabel('API key').fill('sk-mm-wrong')
    await page.keyboard.press('Enter')

    expect(await page.getByRole('alert').textContent()).toMatch(/key/i)
    await expectGood('login-wrong-key-dark-narrow')
  })

  test('logging out ends the session, and going back shows nothing', async () => {
    const { page } = await app.open({ key: { scopes: ['admin'] }, page: '#/keys' })
    await page.getByRole('link', { name: 'Limits' }).click()
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor()

    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Log in to Modelmount' }).waitFor()
    expect(await page.getByText('Your session has ended').count()).toBe(0)
    await page.goBack()

    await expect
      .poll(() => page.getByRole('heading', { level: 1 }).textContent())
      .toBe('Log in to Modelmount')
    expect(await page.getByRole('navigation').count()).toBe(0)
  })

  test('revoking the key of a viewer shows the login page', async () => {
    const { page, expectGood } = await app.open({ key: { name: 'Eve', scopes: ['admin'] }, page: '#/keys' })
    const eve = (await app.llm.keys.list()).find(({ name }) => name === 'Eve')

    await app.llm.keys.revoke(eve?.id ?? '')
    await page.getByRole('link', { name: 'Limits' }).click()

    await page.getByRole('heading', { name: 'Log in to Modelmount' }).waitFor()
    await page.getByText('Your session has ended, because its API key was revoked or has expired.').waitFor()
    await expectGood('login-revoked')
  })

  test('the log of the browser has no error on the login page', async () => {
    const { page } = await app.open()
    const errors: string[] = []
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))

    await page.reload()
    await page.getByLabel('API key').waitFor()

    expect(errors).toEqual([])
    expect(await page.getByText('Your session has ended').count()).toBe(0)
  })
})

describe('navigation', () => {
  test('an operator sees the pages for operators, a user only their own', async () => {
    const operator = await app.open({ key: { scopes: ['admin:read'] } })
    const user = await app.open({ key: { scopes: ['inference'] } })
    const linksOf = ({ page }: typeof user) =>
      page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()

    expect(await linksOf(operator)).toEqual([
      'Overview',
      'Live calls',
      'Usage',
      'Batches',
      'Keys',
      'Limits',
      'Audit',
    ])
    expect(await linksOf(user)).toEqual(['Models', 'Playground', 'My key'])
  })

  test('a page without access says so', async () => {
    const { page, expectGood } = await app.open({ key: { scopes: ['inference'] }, page: '#/keys' })

    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('No access')
    await expectGood('no-access')
  })

  test('on a phone, the menu opens and closes with the keyboard', async () => {
    const { page, expectGood } = await app.open({ key: { scopes: ['admin'] }, page: '#/keys', width: 360 })
    const menu = page.getByRole('button', { name: 'Menu' })

    await menu.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Limits' }).waitFor()
    await expectGood('menu-narrow')
    await page.keyboard.press('Escape')
    expect(await menu.getAttribute('aria-expanded')).toBe('false')

    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Limits' }).press('Enter')
    await page.getByRole('heading', { name: 'Limits' }).waitFor()
    await expect.poll(() => page.getByRole('link', { name: 'Keys' }).isVisible()).toBe(false)
  })

  test('the first tab stop skips the navigation', async () => {
    const { page } = await app.open({ key: { scopes: ['admin'] }, page: '#/limits' })

    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')

    expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN')
  })

  test('reloading keeps the page and its filters', async () => {
    const { page } = await app.open({ key: { scopes: ['admin'] }, page: '#/keys?status=revoked' })

    await page.reload()

    expect(await page.getByLabel('Status').inputValue()).toBe('revoked')
  })
})

test('without a database, a login link opens the console, and pages say what they need', async () => {
  const { links, open } = await startConsole({ auth: 'anonymous', database: undefined })
  const { page, expectGood } = await open({ page: links.create() })

  await page.getByRole('heading', { name: 'Live calls' }).waitFor()
  expect(page.url()).not.toContain('token')
  await page.getByRole('link', { name: 'Keys' }).click()

  await page.getByText('This page needs a database').waitFor()
  await expectGood('needs-database')
})

test('a login link works once', async () => {
  const { links, open } = await startConsole({ auth: 'anonymous', database: undefined })
  const link = links.create()
  const first = await open({ page: link })
  await first.page.getByRole('heading', { name: 'Live calls' }).waitFor()

  const { page, expectGood } = await open({ page: link })

  expect(await page.getByRole('alert').textContent()).toContain('not valid any more')
  await page.getByText('For another link, start modelmount serve --console again.').waitFor()
  await expectGood('login-used-link')
})
