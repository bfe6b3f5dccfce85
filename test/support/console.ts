/** An app with the console, and browsers of viewers that look at it. */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { LoginLinks } from '@modelmount/console'
import { createLlm, type KeySettings, type Llm, type LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import type { Browser, Page } from 'playwright-core'
import { afterAll, expect } from 'vitest'
import { launchChromium } from './chromium.ts'
import { consoleMounts } from './console-mounts.ts'
import { emptyFolder } from './empty-folder.ts'
import { listen } from './listen.ts'

export interface ConsoleApp {
  readonly llm: Llm
  readonly links: LoginLinks
  /** URL of the console, with a slash at its end. */
  readonly url: string
  /** Opens a page of the console in a new browser profile, as the holder of a new key. */
  open(viewer?: ViewerOptions): Promise<Viewer>
}

export interface ViewerOptions {
  /** Settings of the key. Without a key, the viewer has not logged in. */
  readonly key?: Partial<KeySettings>
  /** @default the URL of the app */
  readonly url?: string
  /** @default '#/' */
  readonly page?: string
  /** In pixels. @default 1280 */
  readonly width?: number
  /** @default 'light' */
  readonly colorScheme?: 'light' | 'dark'
}

export interface Viewer {
  readonly page: Page
  /** The secret of the key. Empty without a key. */
  readonly secret: string
  /**
   * Fails on errors of scripts and of the Content-Security-Policy, requests that fail, violations that axe finds, and content that is wider
   * than the window. Saves a screenshot if the environment variable MODELMOUNT_SCREENSHOTS names a folder.
   *
   * @param isWhole whether the screenshot has the whole page, or what is visible. @default true
   */
  expectGood(name: string, isWhole?: boolean): Promise<void>
}

/** Adds the end of the app and of its browser to the tests of the file. */
export async function startConsole(
  options: Partial<LlmOptions> = {},
  /** A name in `consoleMounts`. */
  mount = 'Express',
): Promise<ConsoleApp> {
  const llm = await createLlm({
    engine: scriptedEngine('Hello there.'),
    models: emptyFolder(),
    auth: 'keys',
    database: ':memory:',
    ...options,
  })
  const links = new LoginLinks()
  const server = await listen(consoleMounts[mount]?.(llm, { loginLinks: links }) ?? expect.unreachable(mount))
  const browser = await launchChromium()
  afterAll(async () => {
    await browser.close()
    await server.close()
    await llm.close()
  })
  const url = `${server.url}/tools/console/`
  return { llm, links, url, open: (viewer = {}) => openPage({ llm, url, browser }, viewer) }
}

async function openPage(
  { llm, url: appUrl, browser }: Pick<ConsoleApp, 'llm' | 'url'> & { readonly browser: Browser },
  { key, url = appUrl, page: address = '#/', width = 1280, colorScheme = 'light' }: ViewerOptions,
): Promise<Viewer> {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, locale: 'en-US' })
  const problems: string[] = []
  context.on('weberror', (event) => problems.push(event.error().message))
  context.on('console', (message) => {
    // Chromium reports each response with an error status, which the pages themselves show.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(message.text())
  })
  // Answers of the APIs with an error status are shown by the pages, and checked by their tests.
  context.on('response', (response) => {
    const path = response.url().slice(url.length)
    if (response.status() >= 400 && !/^(admin|llm|session)\b/.test(path))
      problems.push(`${response.status()} ${path}`)
  })
  context.on('requestfailed', (request) => {
    // A page that is left aborts its requests.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED')
      problems.push(`${request.failure()?.errorText} ${request.url()}`)
  })
  let secret = ''
  if (key) {
    ;({ secret } = await llm.keys.create({ name: 'Ada', ...key }))
    const login = await context.request.post(`${url}session`, { data: { key: secret } })
    expect(login.status()).toBe(201)
  }
  const page = await context.newPage()
  await page.goto(url + address)
  // Not the heading that is there while the session is being read.
  await page.locator('.main h1, .login-box h1').waitFor()
  const expectGood: Viewer['expectGood'] = async (name, isWhole = true) => {
    await saveScreenshot(page, name, isWhole)
    expect(await findViolations(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    expect(problems).toEqual([])
  }
  return { page, secret, expectGood }
}

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

async function findViolations(page: Page): Promise<readonly string[]> {
  // Not `addScriptTag`, which the Content-Security-Policy of the console refuses.
  await page.evaluate(readFileSync(axePath, 'utf8'))
  return page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
       violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => id + ': ' + help + ': ' + target)))`,
  )
}

async function saveScreenshot(page: Page, name: string, fullPage: boolean): Promise<void> {
  const folder = process.env.MODELMOUNT_SCREENSHOTS
  if (!folder) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage })
}
