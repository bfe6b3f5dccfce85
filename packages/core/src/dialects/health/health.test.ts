import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import { listen } from '../../../../../test/support/listen.ts'
import { createLlm } from '../../create-llm.ts'
import { toNodeHandler } from '../../http/node.ts'
import type { LlmOptions } from '../../options.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'
import { type HealthRouteOptions, healthRoutes } from './index.ts'

/** Headers that a proxy adds, so that the call is not a direct one. */
const proxied = { 'x-forwarded-for': '203.0.113.9' }

async function open(options: LlmOptions = {}, routeOptions?: HealthRouteOptions) {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: emptyFolder(), ...options })
  onTestFinished(() => llm.close())
  const { url } = await listen(toNodeHandler(healthRoutes(routeOptions), llm))
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url + path, { headers })
    return { status: response.status, body: await response.text() }
  }
  return { llm, get }
}

test('without authentication, the body says ok and no more', async () => {
  const { get } = await open({ auth: 'keys', database: ':memory:' })

  expect(await get('/readyz', proxied)).toEqual({ status: 200, body: 'ok' })
})

test('details and other models need authentication behind a proxy', async () => {
  const { get } = await open({ auth: 'keys', database: ':memory:' }, { models: ['tiny'] })

  const [listed, other, details] = await Promise.all([
    get('/readyz?model=tiny', proxied),
    get('/readyz?model=other', proxied),
    get('/readyz?verbose', proxied),
  ])

  expect(listed).toEqual({ status: 200, body: 'ok' })
  expect([other.status, details.status]).toEqual([401, 401])
})

test('a direct call from this machine may name any model, but sees no details', async () => {
  const { get } = await open({ auth: 'keys', database: ':memory:' })

  expect(await get('/readyz?model=any')).toEqual({ status: 200, body: 'ok' })
  expect((await get('/readyz?verbose')).status).toBe(401)
})

test('a key for calls may name a model, and the details need the scope of an administrator', async () => {
  const { llm, get } = await open({ auth: 'keys', database: ':memory:' })
  const user = await llm.keys.create({ name: 'app' })
  const operator = await llm.keys.create({ name: 'ops', scopes: ['admin'] })
  const as = ({ secret }: { readonly secret: string }) => ({ ...proxied, 'x-api-key': secret })

  expect(await get('/readyz?model=any', as(user))).toEqual({ status: 200, body: 'ok' })
  expect((await get('/readyz?verbose', as(user))).status).toBe(403)
  const details = await get('/readyz?verbose', as(operator))
  expect(details.status).toBe(200)
  expect(JSON.parse(details.body)).toEqual({
    status: 'ok',
    checks: {
      app: { status: 'ok' },
      database: { status: 'ok' },
      engine: { status: 'ok' },
      queue: { status: 'ok' },
      models: { status: 'ok' },
    },
  })
})

test('a key that may use some models cannot ask for others', async () => {
  const { llm, get } = await open({ auth: 'keys', database: ':memory:' })
  const { secret } = await llm.keys.create({ name: 'app', models: ['tiny'] })
  const headers = { ...proxied, 'x-api-key': secret }

  expect((await get('/readyz?model=tiny', headers)).status).toBe(200)
  expect((await get('/readyz?model=other', headers)).status).toBe(403)
})

test('with `auth: host`, the probes need no `authenticate`, and details are 401', async () => {
  const { get } = await open({ auth: 'host' })

  expect(await get('/readyz', proxied)).toEqual({ status: 200, body: 'ok' })
  expect((await get('/readyz?verbose')).status).toBe(401)
})

test('in anonymous mode, a direct call from this machine sees the details', async () => {
  const { llm, get } = await open()
  void llm.close({ admitFor: '1s' })

  const details = await get('/readyz?verbose')

  expect(details.status).toBe(503)
  expect(JSON.parse(details.body)).toMatchObject({
    status: 'unavailable',
    checks: { app: { status: 'unavailable', reason: 'The app is closing.' }, models: { status: 'ok' } },
  })
})

test('the start is over when the app was ready once', async () => {
  const models = emptyFolder()
  const { llm, get } = await open({ models })
  void llm.close({ admitFor: '1s' })

  expect((await get('/startupz')).status).toBe(503)

  const { llm: other, get: getOther } = await open()
  expect((await getOther('/readyz')).status).toBe(200)
  void other.close({ admitFor: '1s' })
  expect((await getOther('/readyz')).status).toBe(503)
  expect((await getOther('/startupz')).status).toBe(200)
})

test('another method is 405, and another path 404', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: emptyFolder() })
  onTestFinished(() => llm.close())
  const { url } = await listen(toNodeHandler(healthRoutes(), llm))

  const post = await fetch(`${url}/readyz`, { method: 'POST' })
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  expect((await fetch(`${url}/nope`)).status).toBe(404)
})

test.each([
  [{ models: 'tiny' }, 'Expected `models` to be a list of strings'],
  [{ model: ['tiny'] }, 'Unknown option `model`'],
])('the options %j throw a TypeError', (options, message) => {
  expect(() => healthRoutes(options as HealthRouteOptions)).toThrow(message)
})
