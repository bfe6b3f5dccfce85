import { once } from 'node:events'
import type { Server } from 'node:http'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import express from 'express'
import request, { type Response } from 'supertest'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { consoleRouter } from './express.ts'
import { LoginLinks } from './login-links.ts'

const engine = scriptedEngine('Hello there.')
const models = emptyFolder()
const everyone = ['inference', 'models', 'admin:read', 'admin'] as const

const servers = new Set<Server>()
afterAll(() => {
  for (const server of servers) server.close()
})

/** One port for all requests, because the name of the cookie contains it. */
async function serve(llm: Llm, options?: Parameters<typeof consoleRouter>[1]): Promise<Server> {
  const server = express().use('/console', consoleRouter(llm, options)).listen(0, '127.0.0.1')
  servers.add(server)
  await once(server, 'listening')
  return server
}

/** A browser: its cookie and its CSRF token. */
class Browser {
  readonly #app: Server
  cookie = ''
  token = ''

  constructor(app: Server) {
    this.#app = app
  }

  async get(path: string): Promise<Response> {
    return this.#keep(await request(this.#app).get(path).set('cookie', this.cookie))
  }

  async post(path: string, body: object = {}, headers: Record<string, string> = {}): Promise<Response> {
    const sent = { cookie: this.cookie, 'x-modelmount-csrf': this.token, ...headers }
    return this.#keep(await request(this.#app).post(path).set(sent).send(body))
  }

  async logOut(): Promise<Response> {
    const sent = { cookie: this.cookie, 'x-modelmount-csrf': this.token }
    return request(this.#app).delete('/console/session').set(sent)
  }

  #keep(response: Response): Response {
    const [set] = response.headers['set-cookie'] ?? []
    this.cookie = set?.split(';')[0] ?? this.cookie
    this.token = response.body.csrfToken ?? this.token
    return response
  }
}

describe('with API keys', () => {
  let llm: Llm
  let app: Server
  let browser: Browser
  let adminId = ''
  let adminKey = ''
  beforeAll(async () => {
    llm = await createLlm({ engine, models, auth: 'keys', database: ':memory:' })
    app = await serve(llm, { apiUrl: 'https://api.example.com/llm' })
    const { key, secret } = await llm.keys.create({ name: 'Ada', scopes: ['admin', 'inference'] })
    ;[adminId, adminKey] = [key.id, secret]
    browser = new Browser(app)
    expect((await browser.post('/console/session', { key: adminKey })).status).toBe(201)
  })
  afterAll(() => llm.close())

  test('without a session, the pages load, session says how to log in, and both APIs answer 401', async () => {
    const page = await request(app).get('/console/')
    const session = await request(app).get('/console/session')
    const admin = await request(app).get('/console/admin/keys')
    const models = await request(app).get('/console/llm/v1/models')

    expect(page.text).toContain('<div id="app">')
    expect([session.status, admin.status, models.status]).toEqual([200, 401, 401])
    expect(session.body).toEqual({ logins: { key: true, link: false } })
  })

  test('an API key itself is not accepted, only its session', async () => {
    const response = await request(app).get('/console/admin/keys').set('x-api-key', adminKey)

    expect(response.status).toBe(401)
  })

  test('no cache stores the data of a viewer', async () => {
    const list = await browser.get('/console/admin/keys')
    const asset = await request(app).get('/console/')

    expect(list.headers['cache-control']).toBe('no-store')
    expect(asset.headers['cache-control']).toBe('no-cache')
  })

  test('the session describes the viewer, and is a cookie that scripts and other sites cannot use', async () => {
    const login = await browser.post('/console/session', { key: adminKey })
    const session = await browser.get('/console/session')

    expect(login.headers['set-cookie']?.[0]).toMatch(/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect(login.headers['cache-control']).toBe('no-store')
    expect(JSON.stringify(login.headers) + login.text).not.toContain(adminKey)
    expect(session.body).toEqual({
      caller: { id: adminId, name: 'Ada' },
      scopes: ['admin', 'inference'],
      csrfToken: browser.token,
      canLogOut: true,
      auth: 'keys',
      hasDatabase: true,
      apiUrl: 'https://api.example.com/llm',
    })
  })

  test('a change needs the CSRF token of the session, and then runs as the viewer', async () => {
    const other = new Browser(app)
    await other.post('/console/session', { key: adminKey })
    const create = (headers: Record<string, string>) =>
      browser.post('/console/admin/keys', { name: 'new' }, headers)

    const answers = [
      await create({ 'x-modelmount-csrf': '' }),
      await create({ 'x-modelmount-csrf': other.token }),
      await create({}),
    ]

    expect(answers.map(({ status }) => status)).toEqual([403, 403, 201])
    expect(answers[0]?.body.error).toMatchObject({ code: 'permission' })
  })

  test.each([
    ['/console/admin/keys', 'code'],
    ['/console/llm/api/show', undefined],
    ['/console/llm/v1/chat/completions', 'type'],
  ])('%s refuses a page of another origin', async (path, field) => {
    const response = await browser.post(path, {}, { origin: 'https://evil.example' })

    expect(response.status).toBe(403)
    expect(field === undefined ? typeof response.body.error : typeof response.body.error[field]).toBe(
      'string',
    )
  })

  test('the public APIs answer the viewer, and charge its key', async () => {
    const chat = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }

    const response = await browser.post('/console/llm/v1/chat/completions', chat)

    expect(response.body.choices[0].message.content).toBe('Hello there.')
    await vi.waitFor(async () => {
      const [row] = await llm.usage.report({ by: 'key' })
      expect(row).toMatchObject({ group: adminId, calls: 1 })
    })
  })

  test('a viewer without the scope sees the error of the API', async () => {
    const { secret } = await llm.keys.create({ name: 'Bob' })
    const bob = new Browser(app)
    await bob.post('/console/session', { key: secret })

    const response = await bob.get('/console/admin/keys')

    expect(response.status).toBe(403)
  })

  test('a revoked key ends its sessions', async () => {
    const { key, secret } = await llm.keys.create({ name: 'Eve', scopes: ['admin'] })
    const eve = new Browser(app)
    await eve.post('/console/session', { key: secret })
    const before = await eve.get('/console/admin/keys')

    await llm.keys.revoke(key.id)

    expect([before.status, (await eve.get('/console/admin/keys')).status]).toEqual([200, 401])
    const session = await eve.get('/console/session')
    expect(session.body).toEqual({
      logins: { key: true, link: false },
      message:
        'Your session has ended, because its API key was revoked or has expired. Log in with another key.',
    })
  })

  test('the sessions of a rotated key end with its previous secret', async () => {
    const { key, secret } = await llm.keys.create({ name: 'Eve', scopes: ['admin'] })
    const eve = new Browser(app)
    await eve.post('/console/session', { key: secret })

    const { secret: next } = await llm.keys.rotate(key.id, { grace: '1s' })
    const late = new Browser(app)
    await late.post('/console/session', { key: secret })
    const during = [await eve.get('/console/admin/keys'), await late.get('/console/admin/keys')]
    await vi.waitFor(async () => expect((await eve.get('/console/admin/keys')).status).toBe(401), 5_000)
    const after = await late.get('/console/admin/keys')
    await eve.post('/console/session', { key: next })

    expect(during.map(({ status }) => status)).toEqual([200, 200])
    expect([after.status, (await eve.get('/console/admin/keys')).status]).toEqual([401, 200])
  })

  test('logging out ends the session and deletes the cookie', async () => {
    const visitor = new Browser(app)
    await visitor.post('/console/session', { key: adminKey })

    const response = await visitor.logOut()

    expect(response.headers['set-cookie']?.[0]).toContain('Max-Age=0')
    expect((await visitor.get('/console/session')).body).not.toHaveProperty('caller')
  })

  test.each([
    [{}, 400],
    [{ key: 7 }, 400],
    [{ key: 'a', token: 'b' }, 400],
    [[], 400],
    [{ key: 'sk-mm-wrong' }, 401],
    [{ token: 'wrong' }, 401],
  ])('the login %j is rejected with %i', async (body, status) => {
    const response = await new Browser(app).post('/console/session', body)

    expect(response.status).toBe(status)
    expect(response.body.error.message).toMatch(/\w/)
  })

  test('an address may try 30 wrong links per minute, and a key may log in 30 times', async () => {
    const llm = await createLlm({ engine, models, auth: 'keys', database: ':memory:' })
    const visitor = new Browser(await serve(llm))
    const statuses: number[] = []
    for (let count = 0; count < 32; count++)
      statuses.push((await visitor.post('/console/session', { token: 'wrong' })).status)
    const { secret } = await llm.keys.create({ name: 'Ada' })
    const logins: number[] = []
    for (let count = 0; count < 32; count++)
      logins.push((await visitor.post('/console/session', { key: secret })).status)
    await llm.close()

    expect(statuses.slice(0, 30)).toEqual(Array(30).fill(401))
    expect(statuses.at(-1)).toBe(429)
    expect(logins.slice(0, 30)).toEqual(Array(30).fill(201))
    expect(logins.at(-1)).toBe(429)
  })
})

describe('with the login of the host app', () => {
  let llm: Llm
  let browser: Browser
  beforeAll(async () => {
    llm = await createLlm({ engine, models, auth: 'host', database: ':memory:' })
    const app = await serve(llm, {
      authenticate: (req) => (req.get('x-user') === 'none' ? undefined : { id: 'ann', scopes: everyone }),
    })
    browser = new Browser(app)
  })
  afterAll(() => llm.close())

  test('the first request sets a cookie for the CSRF token, and changes need it', async () => {
    const session = await browser.get('/console/session')
    const refused = await browser.post('/console/admin/keys', { name: 'new' }, { 'x-modelmount-csrf': '' })
    const created = await browser.post('/console/admin/keys', { name: 'new' })

    expect(session.body).toMatchObject({ caller: { id: 'ann' }, canLogOut: false })
    expect([refused.status, created.status]).toEqual([403, 201])
  })

  test('an error of `authenticate` reaches the error handler of the host app, also from session', async () => {
    const failing = consoleRouter(llm, {
      authenticate: () => {
        throw Object.assign(new Error('Session store down'), { status: 418 })
      },
    })
    const host = express().use('/console', failing)
    host.set('env', 'test')

    const session = await request(host).get('/console/session')
    const admin = await request(host).get('/console/admin/keys')

    expect([session.status, admin.status]).toEqual([418, 418])
  })

  test('without a user, there is no other login', async () => {
    const login = await browser.post('/console/session', { key: 'sk-mm-1' })
    const session = await request(await serve(llm, { authenticate: () => undefined })).get('/console/session')

    expect(login.status).toBe(400)
    expect(session.status).toBe(200)
    expect(session.body).toEqual({ logins: { key: false, link: false } })
  })
})

describe('with a login link', () => {
  test('a link logs in once, with all scopes', async () => {
    const llm = await createLlm({ engine, models })
    const links = new LoginLinks()
    const app = await serve(llm, { loginLinks: links })
    const token = links.create().replace('#/login?token=', '')

    const first = await new Browser(app).post('/console/session', { token })
    const second = await new Browser(app).post('/console/session', { token })
    await llm.close()

    expect(first.body).toMatchObject({ caller: { id: 'console' }, scopes: everyone, hasDatabase: false })
    expect([first.status, second.status]).toEqual([201, 401])
  })

  test('a link expires after ten minutes', () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const links = new LoginLinks()
    const [early, late] = [links.create(), links.create()].map((link) => link.replace('#/login?token=', ''))

    vi.advanceTimersByTime(599_999)
    const isEarlyValid = links.redeem(early as string)
    vi.advanceTimersByTime(1)
    const isLateValid = links.redeem(late as string)
    vi.useRealTimers()

    expect([isEarlyValid, isLateValid]).toEqual([true, false])
  })

  test('without a database, routes that need one say so', async () => {
    const llm = await createLlm({ engine, models })
    const links = new LoginLinks()
    const browser = new Browser(await serve(llm, { loginLinks: links }))
    await browser.post('/console/session', { token: links.create().replace('#/login?token=', '') })

    const keys = await browser.get('/console/admin/keys')
    const activity = await browser.get('/console/admin/activity')
    await llm.close()

    expect([keys.status, activity.status]).toEqual([400, 200])
    expect(keys.body.error.message).toContain('database')
  })
})

test('a console where no viewer could log in is refused when it is mounted', async () => {
  const llm = await createLlm({ engine, models })

  expect(() => consoleRouter(llm)).toThrow('No viewer could log in to the console')
  await llm.close()
})
