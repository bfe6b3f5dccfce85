import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { consoleMounts } from '../support/console-mounts.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

const engine = scriptedEngine('Hello there.')

describe.each(Object.entries(consoleMounts))('the console in %s', (_name, mount) => {
  let llm: Llm
  let server: Listening
  let key = ''
  beforeAll(async () => {
    llm = await createLlm({ engine, models: emptyFolder(), auth: 'keys', database: ':memory:' })
    ;({ secret: key } = await llm.keys.create({ name: 'Ada', scopes: ['admin', 'inference'] }))
    server = await listen(mount(llm))
  })
  afterAll(async () => {
    await server.close()
    await llm.close()
  })
  const ask = (path: string, init?: RequestInit): Promise<Response> =>
    fetch(`${server.url}/tools/console${path}`, { redirect: 'manual', ...init })

  test('the path without a slash redirects to the one with it', async () => {
    const response = await ask('')

    expect([response.status, response.headers.get('location')]).toEqual([308, 'console/'])
  })

  test('the page and its script load, compressed, with a strict policy', async () => {
    const page = await ask('/')
    const html = await page.text()
    const [, script = ''] = /src="\.(\/assets\/[^"]+\.js)"/.exec(html) ?? []
    const asset = await ask(script)

    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self';")
    expect(asset.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(asset.headers.get('content-encoding')).toBe('gzip')
    expect(asset.headers.get('cache-control')).toContain('immutable')
    expect((await asset.text()).length).toBeGreaterThan(1_000)
  })

  test('a viewer logs in, creates a key, chats and logs out', async () => {
    const login = await ask('/session', { method: 'POST', body: JSON.stringify({ key }), headers: json })
    const { csrfToken } = (await login.json()) as { readonly csrfToken: string }
    const [cookie = ''] = (login.headers.get('set-cookie') ?? '').split(';')
    const headers = { ...json, cookie, 'x-modelmount-csrf': csrfToken }
    const post = (path: string, body: object) =>
      ask(path, { method: 'POST', body: JSON.stringify(body), headers })

    const created = await post('/admin/keys', { name: 'new' })
    const chat = await post('/llm/v1/chat/completions', {
      model: 'tiny',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
    })
    const text = await chat.text()
    const logout = await ask('/session', { method: 'DELETE', headers })
    const after = await ask('/admin/keys', { headers: { cookie } })

    expect([login.status, created.status, chat.status, logout.status]).toEqual([201, 201, 200, 200])
    expect(text).toContain('data: [DONE]')
    expect(after.status).toBe(401)
  })

  test.each([
    ['/nothing/here', 404],
    ['/assets/missing.js', 404],
    ['/admin/nothing', 404],
    ['/llm/v1/nothing', 404],
    ['/assets/..%2F..%2Fpackage.json', 404],
  ])('%s answers %i', async (path, status) => {
    expect((await ask(path)).status).toBe(status)
  })
})

const json = { 'content-type': 'application/json' }
