/** The console in the browser, in each framework, beside helmet, and behind a proxy that changes paths and the host. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { consoleMounts } from '../../support/console-mounts.ts'
import type { Listening } from '../../support/listen.ts'
import { plainProxy } from '../../support/plain-proxy.ts'

describe.each([...Object.keys(consoleMounts), 'a proxy'])('in %s', (name) => {
  let app: ConsoleApp
  let proxy: Listening | undefined
  let url: string
  beforeAll(async () => {
    app = await startConsole({}, name === 'a proxy' ? 'Express' : name)
    // The proxy has the console at its root, and the app has it below `/tools/console`.
    if (name === 'a proxy') proxy = await plainProxy(app.url.slice(0, -1))
    url = proxy ? `${proxy.url}/` : app.url
  })
  afterAll(() => proxy?.close())

  test('a viewer logs in, opens a deep link, reloads it, changes a key, chats and logs out', async () => {
    const { page, expectGood } = await app.open({ url })
    const { key, secret } = await app.llm.keys.create({ name: 'Ada', scopes: ['admin', 'inference'] })

    await page.getByLabel('API key').fill(secret)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto(`${url}#/keys/${key.id}/edit`)
    await page.reload()
    await page.getByLabel('Name').fill('Ada Lovelace')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
    await page.goto(`${url}#/live`)
    await page.getByText('No calls run now').waitFor()
    await page.goto(`${url}#/playground`)
    await page.getByRole('textbox', { name: /Message/ }).fill('Hello')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Hello there.').waitFor()
    await expectGood(`host-${name}`)
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Log in to Modelmount' }).waitFor()

    expect(page.url().startsWith(url)).toBe(true)
    expect((await page.request.get(`${url}admin/keys`)).status()).toBe(401)
  })
})
