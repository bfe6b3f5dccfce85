/**
 * D-3: an app identified its users by a cookie, and passed them with `auth: 'host'`. A page of another site could then
 * post to the routes: the browser adds the cookie of the visitor, and needs no answer that the page may read.
 */
import type { RequestListener } from 'node:http'
import { type Caller, createLlm, type LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter as koaRouter } from '@modelmount/koa'
import cors from 'cors'
import Koa from 'koa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { expresses } from '../../support/expresses.ts'
import { listen } from '../../support/listen.ts'
import { type MountRoutes, mounts } from '../../support/mounts.ts'
import { nestHandler } from '../../support/nest.ts'
import { plainProxy } from '../../support/plain-proxy.ts'
import { chats, post } from '../../support/served.ts'

const models = emptyFolder()
const ada = () => ({ id: 'ada' })
const site = 'https://app.example.com'
const evil = 'https://evil.example'
const [chat] = chats as [(typeof chats)[number]]

/** @param inFront middleware of the app */
async function start(
  mount: MountRoutes,
  options: LlmOptions = {},
  inFront: (mounted: RequestListener) => RequestListener = (mounted) => mounted,
  authenticate: () => Caller = ada,
) {
  const engine = scriptedEngine('Hello there.')
  const llm = await createLlm({ engine, models, auth: 'host', ...options })
  const { url, close } = await listen(inFront(mount(llm, authenticate)))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  return { engine, url }
}

async function startProxy(...[target, rewrite]: Parameters<typeof plainProxy>): Promise<string> {
  const { url, close } = await plainProxy(target, rewrite)
  onTestFinished(close)
  return url
}

const withCors =
  (options: Parameters<typeof cors>[0]) =>
  (mounted: RequestListener): RequestListener => {
    const allow = cors(options)
    return (req, res) => allow(req as never, res as never, () => mounted(req, res))
  }

/** What a page can send without a preflight. */
const asPage = (origin: string, more: Readonly<Record<string, string>> = {}) => ({
  'content-type': 'text/plain',
  cookie: 'session=ada',
  origin,
  ...more,
})
const statuses = (url: string, headers: Readonly<Record<string, string>>): Promise<number[]> =>
  Promise.all(chats.map(async ({ path, body }) => (await post(url + path, body, headers)).status))

describe.each(Object.entries(mounts))('in %s', (_, mount) => {
  test('a page of another origin gets a 403 in each API, and no model is called', async () => {
    const { engine, url } = await start(mount)

    for (const origin of [evil, 'null', 'http://localhost:5173', 'app://notes', 'not a URL'])
      expect([origin, await statuses(url, asPage(origin))]).toEqual([origin, [403, 403, 403]])
    expect(engine.requests).toEqual([])
  })

  test('the app is not asked for the caller of such a page, nor for that of a preflight', async () => {
    const authenticate = vi.fn(ada)
    const { url } = await start(mount, { origins: [site] }, undefined, authenticate)
    const preflight = (origin: string) =>
      fetch(url + chat.path, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      })

    expect(await statuses(url, asPage(evil))).toEqual([403, 403, 403])
    expect([(await preflight(site)).status, (await preflight(evil)).status]).toEqual([204, 403])
    // The host app answers, or the routes where no app is behind them.
    expect([404, 405]).toContain((await fetch(`${url}${chat.path}`, { method: 'DELETE' })).status)
    expect(authenticate).not.toHaveBeenCalled()
    expect(await statuses(url, asPage(site))).toEqual([200, 200, 200])
  })

  test('the 403 names the option, and a request without an origin is answered', async () => {
    const { url } = await start(mount)

    const refused = await post(url + chat.path, chat.body, asPage(evil))

    expect((await refused.json()) as object).toMatchObject({
      error: { message: expect.stringContaining(`createLlm({ origins: ['${evil}'] })`) },
    })
    expect(await statuses(url, { cookie: 'session=ada' })).toEqual([200, 200, 200])
  })

  test('a listed page is answered, and may read the answer', async () => {
    const { url } = await start(mount, { origins: [site] })

    const response = await post(url + chat.path, chat.body, asPage(site))

    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, site])
    expect(await statuses(url, asPage(evil))).toEqual([403, 403, 403])
  })

  test('a page of the same origin is answered', async () => {
    const { url } = await start(mount)

    expect(await statuses(url, asPage(url))).toEqual([200, 200, 200])
    expect(await statuses(url, asPage(url, { 'sec-fetch-site': 'same-origin' }))).toEqual([200, 200, 200])
  })

  test('a page of the same origin is answered behind a proxy that rewrites the Host header', async () => {
    const { url } = await start(mount)
    const proxy = await startProxy(url)
    const page = { 'sec-fetch-site': 'same-origin' }

    expect(await statuses(proxy, asPage(proxy, page))).toEqual([200, 200, 200])
    expect(await statuses(proxy, asPage(site, page))).toEqual([200, 200, 200])
  })

  test('behind such a proxy, pages of other origins get a 403, also one with the address of the app itself', async () => {
    const { engine, url } = await start(mount)
    const proxy = await startProxy(url)

    for (const fetchSite of ['cross-site', 'same-site', 'none', undefined]) {
      const page = asPage(evil, { ...(fetchSite && { 'sec-fetch-site': fetchSite }) })
      expect([fetchSite, await statuses(proxy, page)]).toEqual([fetchSite, [403, 403, 403]])
    }
    expect(await statuses(proxy, asPage(url, { 'sec-fetch-site': 'cross-site' }))).toEqual([403, 403, 403])
    expect(engine.requests).toEqual([])
  })

  test('an x-forwarded-host from a client that is no trusted proxy has no effect', async () => {
    const { url } = await start(mount)

    expect(await statuses(url, asPage(evil, { 'x-forwarded-host': 'evil.example' }))).toEqual([403, 403, 403])
  })
})

// A `Request` does not contain the headers of the response.
describe.each(Object.entries(mounts).filter(([name]) => name !== 'fetch'))('in %s', (_, mount) => {
  test('a page that the CORS middleware of the app allows is answered', async () => {
    const { url } = await start(mount, {}, withCors({ origin: site, credentials: true }))

    const response = await post(url + chat.path, chat.body, asPage(site))

    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, site])
    expect(await statuses(url, asPage(evil))).toEqual([403, 403, 403])
  })

  test('`*` from the CORS middleware of the app allows no page', async () => {
    const { engine, url } = await start(mount, {}, withCors({}))

    expect(await statuses(url, asPage(evil))).toEqual([403, 403, 403])
    expect(engine.requests).toEqual([])
  })
})

/** Apps that trust the proxy in front of them. */
const trusting: Readonly<Record<string, MountRoutes>> = {
  ...Object.fromEntries(
    expresses.map(({ version, express, llmRouter }): [string, MountRoutes] => [
      `Express ${version}`,
      (llm, authenticate) => express().set('trust proxy', 'loopback').use(llmRouter(llm, { authenticate })),
    ]),
  ),
  Koa: (llm, authenticate) => {
    const router = koaRouter(llm, { authenticate })
    return Object.assign(new Koa(), { silent: true, proxy: true }).use(router.routes()).callback()
  },
  Nest: (llm, authenticate) =>
    nestHandler(llm, { ...(authenticate && { authenticate }) }, (app) =>
      app.getHttpAdapter().getInstance().set('trust proxy', 'loopback'),
    ),
}

describe.each(Object.entries(trusting))('in %s, which trusts the proxy', (_name, mount) => {
  test('a browser without sec-fetch-site is answered by its x-forwarded-host', async () => {
    const { url } = await start(mount)
    const proxy = await startProxy(url, (headers) => ({
      ...headers,
      'x-forwarded-host': 'app.example.com:8443',
      host: new URL(url).host,
    }))

    expect(await statuses(proxy, asPage(`${site}:8443`))).toEqual([200, 200, 200])
    expect(await statuses(proxy, asPage(site))).toEqual([403, 403, 403])
    // The proxy has rewritten this name, so a page of this name is another page.
    expect(await statuses(proxy, asPage(url))).toEqual([403, 403, 403])
  })
})
