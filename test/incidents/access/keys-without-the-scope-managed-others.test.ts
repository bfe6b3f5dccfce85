/** A-14 and D-7: anybody could delete models, and members of one team managed the keys and usage of another. */
import { readdirSync } from 'node:fs'
import { adminRoutes, createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'

const models = emptyFolder()
/** Any key may read about itself, and request limits for itself only. */
const isOwn = ({ method, path }: { readonly method: string; readonly path: string }): boolean =>
  /^\/me\b/.test(path) || `${method} ${path}` === 'POST /limit-requests'
const digest = `sha256:${'0'.repeat(64)}`

test('a key with the scope inference gets a 403 from every route that manages models, keys or usage', async () => {
  const engine = scriptedEngine('Hello there.')
  const llm = await createLlm({ engine, models, auth: 'keys', database: ':memory:' })
  const app = express().use('/admin', adminRouter(llm)).use(llmRouter(llm))
  const { url, close } = await listen(app)
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const { secret } = await llm.keys.create({ name: 'ann' })
  const { key: other } = await llm.keys.create({ name: 'ben' })
  const { secret: manager } = await llm.keys.create({ name: 'eve', scopes: ['models'] })
  const ask = (secret: string, method: string, path: string, body?: object): Promise<Response> =>
    fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': secret },
      ...(body && { body: JSON.stringify(body) }),
    })

  const modelRoutes: readonly (readonly [method: string, path: string, body?: object])[] = [
    ['POST', '/api/pull', { model: 'tiny' }],
    ['POST', '/api/push', { model: 'tiny' }],
    ['POST', '/api/create', { model: 'made', from: 'tiny' }],
    ['POST', '/api/copy', { source: 'tiny', destination: 'made' }],
    ['DELETE', '/api/delete', { model: 'tiny' }],
    ['HEAD', `/api/blobs/${digest}`],
    ['POST', `/api/blobs/${digest}`, {}],
  ]
  const adminCalls = adminRoutes()
    .routes.filter((route) => route.method !== 'OPTIONS' && !isOwn(route))
    .map(({ method, path }) => [method, `/admin${path.replace(':id', other.id)}`] as const)
  const before = await llm.keys.list()

  for (const [method, path, body] of modelRoutes)
    expect([method, path, (await ask(secret, method, path, body)).status]).toEqual([method, path, 403])
  for (const [method, path] of adminCalls)
    for (const key of [secret, manager])
      expect([method, path, (await ask(key, method, path)).status]).toEqual([method, path, 403])

  const ids = (keys: typeof before) => keys.map(({ id, name, status }) => [id, name, status])
  expect(adminCalls.length).toBeGreaterThan(10)
  expect(ids(await llm.keys.list())).toEqual(ids(before))
  expect(readdirSync(models)).toEqual([])
  const me = await (await ask(secret, 'GET', `/admin/me?key=${other.id}&id=${other.id}`)).text()
  expect(me).toContain('ann')
  expect(me).not.toContain(other.id)
  expect((await ask(manager, 'GET', '/admin/me')).status).toBe(403)
  expect((await ask(manager, 'DELETE', '/api/delete', { model: 'nope' })).status).toBe(404)
  expect((await ask(secret, 'POST', '/api/chat', { model: 'tiny', messages: [] })).status).toBe(200)
})
