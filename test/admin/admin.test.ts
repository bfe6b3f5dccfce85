/** The admin API in each mount, checked against its OpenAPI document. */
import type { RequestListener } from 'node:http'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter as expressRouter, llmRouter } from '@modelmount/express'
import { adminPlugin } from '@modelmount/fastify'
import { adminRouter as koaRouter } from '@modelmount/koa'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listenerOf } from '../support/fastify.ts'
import { listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'

const mounts: Readonly<Record<string, (llm: Llm) => RequestListener>> = {
  Express: (llm) => express().use('/admin', expressRouter(llm)),
  Fastify: (llm) => {
    const app = fastify()
    app.register(adminPlugin, { llm, prefix: '/admin' })
    return listenerOf(app)
  },
  Koa: (llm) => {
    const router = koaRouter(llm).prefix('/admin')
    return new Koa().use(router.routes()).use(router.allowedMethods()).callback()
  },
  Nest: (llm) => nestHandler(llm, { adminPath: 'admin' }),
}

interface Operation {
  readonly operationId: string
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >
  readonly requestBody?: { readonly content: { readonly 'application/json': { schema: object } } }
}
interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const ajv = new Ajv2020({ strict: false })
addFormats.default(ajv)

describe.each(Object.keys(mounts))('the admin API in %s', (name) => {
  let url: string
  let llm: Llm
  let admin: string

  beforeEach(async () => {
    llm = await createLlm({
      engine: scriptedEngine('Hello.'),
      models: emptyFolder(),
      auth: 'keys',
      database: ':memory:',
      tiers: { gold: {} },
    })
    const listening = await listen(mounts[name]?.(llm) as RequestListener)
    url = `${listening.url}/admin`
    onTestFinished(async () => {
      await listening.close()
      await llm.close()
    })
    admin = (await llm.keys.create({ name: 'root', scopes: ['admin'] })).secret
  })

  const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method,
      headers: { 'x-api-key': admin, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })

  test('a key with the scope admin:read reads everything and changes nothing', async () => {
    const { secret } = await llm.keys.create({ name: 'viewer', scopes: ['admin:read'] })
    const get = (path: string) => fetch(url + path, { headers: { 'x-api-key': secret } })

    const reads = await Promise.all(
      ['/keys', '/limit-requests', '/usage', '/activity', '/openapi.json'].map(
        async (path) => (await get(path)).status,
      ),
    )
    const created = await fetch(`${url}/keys`, {
      method: 'POST',
      headers: { 'x-api-key': secret, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'more', scopes: ['admin'] }),
    })

    expect(reads).toEqual([200, 200, 200, 200, 200])
    expect(created.status).toBe(403)
    expect(await created.text()).toContain("This route requires the scope 'admin'")
  })

  test('every route answers as the OpenAPI document describes, and the document has no other route', async () => {
    const document = (await (await send('GET', '/openapi.json')).json()) as Document
    const called = new Set<string>()
    /** Sends a request and checks its response against the OpenAPI schema. */
    const call = async <Answer>(method: string, pattern: string, id = '', body?: object, secret = admin) => {
      const response = await send(method, pattern.replace('{id}', id), body, { 'x-api-key': secret })
      const operation = document.paths[pattern]?.[method.toLowerCase()]
      const described = operation?.responses[response.status] ?? operation?.responses.default
      const [[mediaType, { schema }] = ['', { schema: {} }]] = Object.entries(described?.content ?? {})
      expect(response.headers.get('content-type')).toMatch(mediaType)
      const answer = await (mediaType === 'application/json' ? response.json() : response.text())
      expect(ajv.validate(schema, answer), `${method} ${pattern}: ${ajv.errorsText()}`).toBe(true)
      if (response.ok) called.add(`${method.toLowerCase()} ${pattern}`)
      return { status: response.status, answer: answer as Answer }
    }
    const settings = {
      name: 'made',
      tenant: 'team',
      scopes: ['inference'],
      models: ['tiny'],
      limits: {
        requestsPerMinute: 5,
        tokensPerDay: 900,
        maxOutputTokens: 50,
        perEndUser: { requestsPerMinute: 1 },
      },
      tier: 'gold',
      spendingLimit: { usd: '0.50', period: 'day' },
      expiresIn: '30d',
    }

    type Made = { key: { id: string }; secret: string }
    const made = await call<Made>('POST', '/keys', '', settings)
    const { key, secret } = made.answer
    expect(made.status).toBe(201)
    await llm.keys.authenticate(secret)
    expect((await call<{ data: object[] }>('GET', '/keys')).answer.data).toHaveLength(2)
    const got = await call('GET', '/keys/{id}', key.id)
    expect(got.answer).toMatchObject({ id: key.id, name: 'made', tenant: 'team', limits: settings.limits })
    expect((await call('POST', '/keys/{id}', key.id, { models: null })).answer).not.toHaveProperty('models')
    const inGrace = await call<{ key: object }>('POST', '/keys/{id}/rotate', key.id, { grace: '1h' })
    expect(inGrace.answer.key).toHaveProperty('previousSecretExpiresAt')
    expect((await call('POST', '/keys/{id}/expire-previous-secrets', key.id)).status).toBe(200)
    const rotated = await call<Made>('POST', '/keys/{id}/rotate', key.id, { grace: '0s' })
    expect(rotated.answer.secret).not.toBe(secret)
    expect(rotated.answer.key).not.toHaveProperty('previousSecretExpiresAt')

    const limits = await call<{ data: object[] }>('GET', '/keys/{id}/limits', key.id)
    expect(limits.answer.data).toEqual([
      { name: 'requests', limit: 5, remaining: 5, resetMs: 0 },
      { name: 'tokens', limit: 900, remaining: 900, resetMs: 0, windowMs: 86_400_000 },
    ])

    const ask = {
      limits: { requestsPerMinute: 50 },
      spendingLimit: { usd: 2, period: 'day' },
      reason: 'More, please.',
    }
    const first = await call<{ id: string }>('POST', '/limit-requests', '', ask, rotated.answer.secret)
    expect((await call<{ data: object[] }>('GET', '/limit-requests')).answer.data).toHaveLength(1)
    await call('POST', '/limit-requests/{id}/approve', first.answer.id)
    expect((await llm.keys.get(key.id)).limits).toEqual({ ...settings.limits, requestsPerMinute: 50 })
    const second = await call<{ id: string }>('POST', '/limit-requests', '', ask, rotated.answer.secret)
    await call('POST', '/limit-requests/{id}/refuse', second.answer.id)
    const { secret: own } = await llm.keys.create({ name: 'own' })
    for (const path of ['/me', '/me/limits', '/me/usage', '/me/limit-requests'])
      expect((await call('GET', path, '', undefined, own)).status).toBe(200)
    expect((await call('GET', '/tiers')).answer).toEqual({
      data: [{ name: 'gold', limits: {}, weight: 1, keys: 1 }],
    })
    expect((await call('GET', '/prices')).answer).toEqual({ data: [], unpricedModels: ['tiny:latest'] })
    expect((await call('POST', '/keys/{id}/revoke', key.id)).answer).toMatchObject({ status: 'revoked' })

    for await (const _event of await llm.generate(
      { model: 'tiny', input: { kind: 'text', prompt: ['Hi'] } },
      {
        signal: new AbortController().signal,
        caller: { id: key.id, tenant: 'team', key: { id: key.id, name: 'made' } },
      },
    ));
    expect((await call<{ data: object[] }>('GET', '/usage')).answer.data).toMatchObject([
      { group: key.id, name: 'made', calls: 1, nanoUsd: '0', batch: { calls: 0, nanoUsd: '0' } },
    ])
    expect((await call<{ data: object[] }>('GET', '/traffic')).answer.data).toMatchObject([{ calls: 1 }])
    expect((await call<string>('GET', '/usage.csv')).answer).toContain(key.id)
    await call('POST', '/tenants/{id}/delete', 'nobody')

    let running: readonly object[] = []
    const caller = { id: 'ann', tenant: 'team' }
    for await (const _ of llm.chat('Hi', { model: 'tiny', stream: true, caller }))
      running = (await call<{ calls: object[] }>('GET', '/activity')).answer.calls
    expect(running).toMatchObject([{ caller: 'ann', tenant: 'team', kind: 'generate', phase: 'decoding' }])
    expect((await call<{ calls: object[] }>('GET', '/activity')).answer.calls).toEqual([])
    const cancelRunning = async (): Promise<void> => {
      for await (const _ of llm.chat('Hi', { model: 'tiny', stream: true, caller })) {
        const [{ id = '' } = {}] = (await call<{ data: { id: string }[] }>('GET', '/calls')).answer.data
        expect((await call('POST', '/calls/{id}/cancel', id)).answer).toEqual({ id, status: 'canceled' })
      }
    }
    await expect(cancelRunning()).rejects.toMatchObject({ code: 'permission' })
    const events = await send('GET', '/events')
    expect(events.headers.get('content-type')).toMatch('text/event-stream')
    const { value } = await (events.body as ReadableStream<Uint8Array>).getReader().read()
    expect(new TextDecoder().decode(value)).toContain('event: calls\ndata: {"data":[],"isShared":true}')
    called.add('get /events')

    const batch = await llm.batches.create(
      [
        {
          custom_id: 'one',
          params: { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] },
        },
      ],
      { caller, metadata: { job: 'nightly' } },
    )
    expect((await call<{ data: object[] }>('GET', '/batches')).answer.data).toMatchObject([{ id: batch.id }])
    await llm.batches.waitUntilEnded(batch.id)
    const ended = { id: batch.id, status: 'ended', tenant: 'team', caller: 'ann', models: ['tiny'] }
    expect((await call('GET', '/batches/{id}', batch.id)).answer).toMatchObject(ended)
    expect((await call('POST', '/batches/{id}/cancel', batch.id)).answer).toMatchObject(ended)
    expect((await call<string>('GET', '/batches/{id}/results', batch.id)).answer).toMatch(/^{.*"one".*}\n$/)

    const byTenant = await send('GET', '/usage?by=tenant')
    expect(await byTenant.json()).toMatchObject({ data: [{ group: 'team', calls: 4 }] })

    const changes = await call<{ data: { action: string; outcome: string }[] }>('GET', '/audit')
    const changing = Object.values(document.paths).flatMap(({ post }) => post?.operationId ?? [])
    expect([...new Set(changes.answer.data.map(({ action }) => action))].sort()).toEqual(changing.sort())
    expect(new Set(changes.answer.data.map(({ outcome }) => outcome))).toEqual(new Set(['success']))

    const refusals = [
      await call('GET', '/keys/{id}', 'key_none'),
      await call('POST', '/keys', '', { name: '' }),
      await call('POST', '/keys/{id}/rotate', key.id, {}),
      await call('POST', '/limit-requests/{id}/approve', first.answer.id),
      await call('GET', '/keys', '', undefined, 'wrong'),
    ]
    expect(refusals.map(({ status }) => status)).toEqual([404, 400, 409, 409, 401])
    expect((await send('GET', '/usage?by=hour')).status).toBe(400)
    expect((await send('GET', '/usage?from=yesterday')).status).toBe(400)
    expect((await send('GET', '/usage?order=calls')).status).toBe(400)

    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method} ${path}`),
    )
    expect([...called].sort()).toEqual(described.sort())
    expect(document.openapi).toBe('3.1.0')
  })

  test('the OpenAPI schemas accept exactly the values that the routes accept', async () => {
    const document = (await (await send('GET', '/openapi.json')).json()) as Document
    const operations = Object.values(document.paths).flatMap((one) => Object.values(one))
    const bodyOf = (path: string) => document.paths[path]?.post?.requestBody
    const fits = (path: string, body: object): boolean =>
      ajv.validate(bodyOf(path)?.content['application/json'].schema as object, body)
    const { id } = (await llm.keys.create({ name: 'made' })).key

    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    expect(document.paths['/keys/{id}/rotate']?.post).toMatchObject({
      operationId: 'rotateKey',
      requestBody: { required: false },
      responses: { 400: {}, 401: {}, 403: {}, 404: {}, 408: {}, 409: {}, 429: {} },
    })
    expect(document.paths['/tenants/{id}/delete']?.post).toMatchObject({ responses: { 409: {} } })
    expect(Object.keys(document.paths['/keys']?.get?.responses ?? {})).not.toContain('408')
    for (const operation of operations)
      expect(/\bbodies\b/.test(JSON.stringify(operation.responses[429]))).toBe('requestBody' in operation)
    const times = ['30d', '1h30m', '2040-01-02', '2040-01-02T03:04:05Z', 5_000, 'soon', '-1h', {}, true]
    const limits = [
      ...[0, 1, 1.5, 100_000_000, 100_000_001].map((tokensPerDay) => ({ tokensPerDay })),
      ...[{}, { concurrent: 1 }, { tokensPerDay: 1 }, 5].map((perEndUser) => ({ perEndUser })),
      { maxOutputTokens: 1 },
      { maxOutputTokens: '1' },
    ]
    const amounts = [0, 1.5, '1.50', '0.000000001', -1, '-1', '1e3', '5.', 1e7, '$5', null]
    const settings = [
      ...times.flatMap((time) => [{ expiresIn: time }, { expiresAt: time }]),
      { expiresIn: '30d', expiresAt: '2040-01-02' },
      ...amounts.map((usd) => ({ spendingLimit: { usd, period: 'day' } })),
      ...limits.map((limits) => ({ limits })),
    ]
    for (const given of settings)
      expect([given, (await send('POST', '/keys', { name: 'x', ...given })).ok]).toEqual([
        given,
        fits('/keys', { name: 'x', ...given }),
      ])
    for (const grace of ['7d', '0', '12h', 5_000, 'abc', '-1s', -1, {}]) {
      const response = await send('POST', `/keys/${id}/rotate`, { grace })
      expect([grace, response.status]).toEqual([grace, fits('/keys/{id}/rotate', { grace }) ? 200 : 400])
      if (!response.ok) expect(await response.json()).toMatchObject({ error: { param: 'grace' } })
    }
  })

  test('a key can be rotated without a request body', async () => {
    const { key } = await llm.keys.create({ name: 'made' })

    expect((await send('POST', `/keys/${key.id}/rotate`)).status).toBe(200)
    expect((await send('POST', '/keys')).status).toBe(400)
    expect((await send('POST', `/keys/${key.id}`)).status).toBe(400)
  })

  test('limit requests are listed by status', async () => {
    const { secret } = await llm.keys.create({ name: 'eager', limits: { concurrent: 1 } })
    const { id } = await llm.keys.requests.create(await llm.keys.authenticate(secret), {
      limits: { concurrent: 2 },
    })
    const idsOf = async (status: string) => {
      const response = await send('GET', `/limit-requests?status=${status}`)
      const { data } = (await response.json()) as { readonly data: readonly { readonly id: string }[] }
      return data.map((one) => one.id)
    }

    expect([await idsOf('pending'), await idsOf('refused')]).toEqual([[id], []])
    expect((await send('GET', '/limit-requests?status=none')).status).toBe(400)
  })

  test('long lists have pages, and invalid pages are rejected', async () => {
    for (const name of ['ann', 'bob', 'cat', 'dan']) {
      const { key, secret } = await llm.keys.create({ name, limits: { concurrent: 1 } })
      await llm.keys.requests.create(await llm.keys.authenticate(secret), { limits: { concurrent: 2 } })
      const { signal } = new AbortController()
      const caller = { id: key.id, key: { id: key.id, name } }
      const request = { model: name, input: { kind: 'text', prompt: ['Hi'] } } as const
      for await (const _event of await llm.generate(request, { signal, caller }));
    }
    interface Page {
      readonly data: readonly { readonly id?: string; readonly group?: string }[]
      readonly next?: string
    }
    const pageOf = async (path: string) => (await (await send('GET', path)).json()) as Page
    const pagesOf = async (path: string, limit: number) => {
      const pages: (string | undefined)[][] = []
      for (let page: Page | undefined; page === undefined || page.next !== undefined; ) {
        const after = page?.next === undefined ? '' : `&after=${encodeURIComponent(page.next)}`
        page = await pageOf(`${path}limit=${limit}${after}`)
        pages.push(page.data.map(({ id, group }) => id ?? group))
      }
      return pages
    }

    for (const path of ['/keys?', '/limit-requests?status=pending&', '/usage?by=model&', '/usage?by=key&']) {
      const all = (await pageOf(`${path}limit=1000`)).data.map(({ id, group }) => id ?? group)
      const pages = await pagesOf(path, 3)
      expect([path, pages.flat()]).toEqual([path, all])
      expect([path, pages.map((page) => page.length)]).toEqual([path, all.length === 5 ? [3, 2] : [3, 1]])
      for (const limit of ['0', '1001', 'ten', '', '1.5', '-1']) {
        const response = await send('GET', `${path}limit=${limit}`)
        expect([path, limit, response.status]).toEqual([path, limit, 400])
        expect(await response.json()).toMatchObject({ error: { param: 'limit' } })
      }
    }
    expect(await pageOf('/usage?by=key&order=cost&limit=1')).toEqual({ data: [expect.anything()] })
    for (const path of ['/keys?', '/limit-requests?', '/usage?order=cost&'])
      expect(await (await send('GET', `${path}after=nothing%00`)).json()).toMatchObject({
        error: { code: 'invalid_request', param: 'after' },
      })
  })

  test('requests without a key, without the scope, or from a web page are rejected', async () => {
    const { secret } = await llm.keys.create({ name: 'plain', scopes: ['inference', 'models'] })

    for (const [method, path, body] of [
      ['GET', '/keys'],
      ['POST', '/keys', { name: 'mine', scopes: ['admin'] }],
      ['GET', '/openapi.json'],
      ['GET', '/limit-requests'],
    ] as const) {
      expect((await send(method, path, body, { 'x-api-key': '' })).status).toBe(401)
      expect((await send(method, path, body, { 'x-api-key': secret })).status).toBe(403)
      const page = await send(method, path, body, { origin: 'http://localhost:5173' })
      expect(page.status).toBe(403)
      expect(page.headers.get('access-control-allow-origin')).toBeNull()
    }
    const preflight = await fetch(`${url}/keys`, {
      method: 'OPTIONS',
      headers: { origin: 'http://localhost:5173', 'access-control-request-method': 'POST' },
    })
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull()
    expect(await llm.keys.list()).toHaveLength(2)
  })

  const codeOf = async (response: Response) =>
    ((await response.json()) as { readonly error: { readonly code: string } }).error.code

  test('errors name the invalid field', async () => {
    const response = await send('POST', '/keys', { name: 'x', limits: { requestsPerMinute: 0 } })

    expect([response.status, await response.json()]).toEqual([
      400,
      {
        error: {
          code: 'invalid_request',
          message: expect.stringContaining('limits.requestsPerMinute'),
          param: 'limits.requestsPerMinute',
        },
      },
    ])
  })

  test('unknown paths and methods get errors of the admin API', async () => {
    const [path, method] = [await send('GET', '/nothing'), await send('DELETE', '/keys')]

    expect([path.status, await codeOf(path)]).toEqual([404, 'not_found'])
    expect([method.status, await codeOf(method)]).toEqual([405, 'method_not_allowed'])
    expect(method.headers.get('allow')).toContain('POST')
  })
})

test('the admin API is not mounted by default', async () => {
  const llm = await createLlm({
    engine: scriptedEngine(''),
    models: emptyFolder(),
    auth: 'keys',
    database: ':memory:',
  })
  const { secret } = await llm.keys.create({ name: 'root', scopes: ['admin'] })
  const { url, close } = await listen(express().use(llmRouter(llm)))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })

  for (const path of ['/keys', '/admin/keys', '/openapi.json'])
    expect((await fetch(url + path, { headers: { 'x-api-key': secret } })).status).toBe(404)
})

test.each(['Express', 'Koa'])('the admin API in %s cannot be mounted without a database', async (name) => {
  const llm = await createLlm({ engine: scriptedEngine(''), models: emptyFolder() })

  expect(() => mounts[name]?.(llm)).toThrow(TypeError)
  expect(() => mounts[name]?.(llm)).toThrow('expected the option `database` of createLlm()')
})
