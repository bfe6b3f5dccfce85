/** The console behind the login of the host app: its users are the viewers, with the scopes that the app gives them. */
import { consoleRouter } from '@modelmount/console/express'
import { createLlm, type Llm, type Scope } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import express from 'express'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from '../../support/chromium.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type Listening, listen } from '../../support/listen.ts'

const scopesOf: Readonly<Record<string, readonly Scope[]>> = {
  admin: ['admin', 'inference'],
  reader: ['admin:read'],
}

let llm: Llm
let server: Listening
let browser: Browser
beforeAll(async () => {
  llm = await createLlm({
    ...{ engine: scriptedEngine('Hello there.'), models: emptyFolder(), auth: 'host', database: ':memory:' },
  })
  const router = consoleRouter(llm, {
    // The app's own session is a cookie.
    authenticate: (req) => {
      const [, id = ''] = /user=(\w+)/.exec(req.get('cookie') ?? '') ?? []
      return scopesOf[id] && { id, scopes: scopesOf[id] }
    },
  })
  server = await listen(express().use('/ops/console', router))
  browser = await launchChromium()
})
afterAll(async () => {
  await browser.close()
  await server.close()
  await llm.close()
})

async function openAs(user: string | undefined, page: string): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-US' })
  if (user) await context.addCookies([{ name: 'user', value: user, url: server.url }])
  const tab = await context.newPage()
  await tab.goto(`${server.url}/ops/console/#/${page}`)
  return tab
}

test('a user with the scope admin creates a key without another login', async () => {
  const page = await openAs('admin', 'keys/new')

  await page.getByLabel('Name').fill('From the app')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('dialog', { name: 'Key created' }).waitFor()

  expect((await llm.keys.list()).map(({ name }) => name)).toContain('From the app')
  expect(await page.getByRole('button', { name: 'Log out' }).count()).toBe(0)
})

test('a user who may only read sees keys, and no button that changes them', async () => {
  const page = await openAs('reader', 'keys')

  await page.getByRole('heading', { name: 'Keys' }).waitFor()
  expect(await page.getByRole('link', { name: 'Create key' }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Playground' }).count()).toBe(0)
})

test('without a user of the app, the console offers no login', async () => {
  const page = await openAs(undefined, 'keys')

  await page.getByRole('heading', { name: 'Log in to Modelmount' }).waitFor()
  expect(await page.getByLabel('API key').count()).toBe(0)
})
