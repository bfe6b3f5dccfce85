/** Lists of keys, their spending, a key about itself, tiers and decisions, on SQLite and PostgreSQL. */
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter } from '@modelmount/express'
import express from 'express'
import request, { type Response } from 'supertest'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

describe.each(databases())('on $name', ({ fresh }) => {
  let llm: Llm
  let server: Listening
  let admin = ''
  beforeAll(async () => {
    llm = await createLlm({
      engine: scriptedEngine('Hello there.'),
      models: emptyFolder(),
      auth: 'keys',
      database: await fresh(),
      prices: { '*': { inputPerMillionUsd: 1_000, outputPerMillionUsd: 2_000 } },
      tiers: { free: { requestsPerMinute: 5 }, gold: { requestsPerMinute: 600, weight: 4 } },
    })
    server = await listen(express().use('/admin', adminRouter(llm)))
    admin = (await llm.keys.create({ name: 'root', scopes: ['admin'] })).secret
  })
  afterAll(async () => {
    await server.close()
    await llm.close()
  })

  const ask = async (
    path: string,
    { key = admin, body }: { key?: string; body?: object } = {},
  ): Promise<Response> => {
    const agent = request(server.url)
    const sent = body ? agent.post(`/admin${path}`).send(body) : agent.get(`/admin${path}`)
    return sent.set('x-api-key', key)
  }
  const namesOf = async (query: string): Promise<readonly string[]> =>
    (await ask(`/keys?${query}`)).body.data.map(({ name }: { readonly name: string }) => name)

  test('a search finds keys by a part of the name, the hint or the id', async () => {
    const { key } = await llm.keys.create({ name: "100%_sure \\ O'Neil" })
    await llm.keys.create({ name: '100 percent' })

    expect(await namesOf(`search=${encodeURIComponent('100%_')}`)).toEqual([key.name])
    expect(await namesOf(`search=${encodeURIComponent("\\ o'NEIL")}`)).toEqual([key.name])
    expect(await namesOf(`search=${key.id.slice(4).toUpperCase()}`)).toEqual([key.name])
    expect(await namesOf(`search=${encodeURIComponent(key.hint.slice(-4))}`)).toContain(key.name)
    expect(await namesOf('search=no+such+key')).toEqual([])
    expect(await namesOf('search=%00100%20percent')).toEqual(['100 percent'])
  })

  test('a list has keys of one status, also over several pages', async () => {
    const created = await Promise.all(
      ['one', 'two', 'three'].map((name) => llm.keys.create({ name: `status ${name}` })),
    )
    await llm.keys.create({ name: 'status expired', expiresIn: 0 })
    await llm.keys.revoke((created[0] as { key: { id: string } }).key.id)

    const active = await namesOf('search=status&status=active')
    const first = await ask('/keys?search=status&status=active&limit=1')
    const second = await ask(`/keys?search=status&status=active&limit=1&after=${first.body.next}`)

    expect([...active].sort()).toEqual(['status three', 'status two'])
    expect([first.body.data[0].name, second.body.data[0].name].sort()).toEqual([...active].sort())
    expect(await namesOf('search=status&status=revoked')).toEqual(['status one'])
    expect(await namesOf('search=status&status=expired')).toEqual(['status expired'])
    expect((await ask('/keys?status=other')).status).toBe(400)
  })

  test('a key sees itself, its limits, usage and spending, and no other key', async () => {
    const spendingLimit = { usd: 5, period: 'month' as const }
    const { key, secret } = await llm.keys.create({
      name: 'mine',
      limits: { requestsPerMinute: 60 },
      spendingLimit,
    })
    await llm.as(await llm.keys.authenticate(secret)).chat('Hello', { model: 'tiny' })
    const rows = await vi.waitFor(async () => {
      const { body } = await ask('/me/usage?by=key', { key: secret })
      expect(body.data).toHaveLength(1)
      return body.data
    })

    const me = await ask('/me', { key: secret })
    const limits = await ask('/me/limits', { key: secret })
    const list = await ask('/keys', { key: secret })

    expect(rows[0]).toMatchObject({ group: key.id, calls: 1 })
    expect(Number(rows[0].nanoUsd)).toBeGreaterThan(0)
    expect(me.body.caller).toEqual({ id: key.id, tenant: key.id, scopes: ['inference'] })
    expect(me.body.key).toMatchObject({
      name: 'mine',
      spending: { nanoUsd: rows[0].nanoUsd, limitNanoUsd: '5000000000', period: 'month' },
    })
    expect(new Date(me.body.key.spending.resetsAt).getUTCDate()).toBe(1)
    expect(limits.body.data).toMatchObject([{ name: 'requests', limit: 60, remaining: 59 }])
    expect(list.status).toBe(403)
    expect((await ask('/keys?search=mine')).body.data[0].spending).toEqual(me.body.key.spending)
    expect((await ask(`/usage?by=model&key=${key.id}`)).body.data).toMatchObject([
      { group: 'tiny:latest', calls: 1 },
    ])
    expect((await ask('/usage?by=key&model=other')).body.data).toEqual([])
  })

  test('a key without calls has spent nothing', async () => {
    const { secret } = await llm.keys.create({
      name: 'new',
      spendingLimit: { usd: '0.5', period: 'lifetime' },
    })

    const { body } = await ask('/me', { key: secret })

    expect(body.key.spending).toEqual({ nanoUsd: '0', limitNanoUsd: '500000000', period: 'lifetime' })
  })

  test('a key asks for more, an admin decides with a note, and the key reads it', async () => {
    const { key, secret } = await llm.keys.create({ name: 'asks', limits: { requestsPerMinute: 5 } })
    const request = (limit: number) =>
      ask('/limit-requests', {
        key: secret,
        body: { limits: { requestsPerMinute: limit }, reason: 'growth' },
      })
    const first = await request(50)
    const approved = await ask(`/limit-requests/${first.body.id}/approve`, { body: { note: 'For a month.' } })
    const second = await request(5_000)
    const refused = await ask(`/limit-requests/${second.body.id}/refuse`, { body: {} })
    const decided = await ask(`/limit-requests/${second.body.id}/refuse`, {
      body: { note: 'x'.repeat(2_001) },
    })

    const { body } = await ask('/me/limit-requests', { key: secret })

    const [{ id: adminId } = { id: '' }] = await llm.keys.list({ search: 'root' })
    expect(approved.body).toMatchObject({ keyName: 'asks', note: 'For a month.', decidedBy: adminId })
    expect(refused.body).not.toHaveProperty('note')
    expect(decided.status).toBe(400)
    expect(body.data.map(({ status }: { readonly status: string }) => status)).toEqual([
      'approved',
      'refused',
    ])
    expect(body.data[0]).toMatchObject({ keyId: key.id, reason: 'growth', note: 'For a month.' })
    expect((await llm.keys.get(key.id)).limits).toEqual({ requestsPerMinute: 50 })
  })

  test('a key asks for more money, and can spend it after the approval', async () => {
    const { key, secret } = await llm.keys.create({
      name: 'poor',
      limits: { requestsPerMinute: 100, concurrent: 2 },
      spendingLimit: { usd: 1, period: 'day' },
    })
    const request = (body: object) => ask('/limit-requests', { key: secret, body })
    const refusals = [
      await request({ limits: { requestsPerMinute: 99 } }),
      await request({ limits: { concurrent: 1 } }),
      await request({ limits: { maxOutputTokens: 1_000 } }),
      await request({ limits: {}, spendingLimit: { usd: '0.99', period: 'day' } }),
      await request({ spendingLimit: { usd: 30, period: 'month' } }),
      await request({ spendingLimit: { usd: -1, period: 'month' } }),
    ]
    const { body: asked } = await request({ spendingLimit: { usd: 31, period: 'month' } })
    const { body: me } = await ask('/me', { key: secret })

    const { body: listed } = await ask('/limit-requests?status=pending')
    await ask(`/limit-requests/${asked.id}/approve`, { body: {} })

    expect(refusals.map(({ status, body }) => [status, body.error.param])).toEqual([
      [400, 'limits.requestsPerMinute'],
      [400, 'limits.concurrent'],
      [400, 'limits.maxOutputTokens'],
      [400, 'spendingLimit'],
      [400, 'spendingLimit'],
      [400, 'spendingLimit.usd'],
    ])
    expect(refusals[0]?.body.error.message).toBe(
      'limits.requestsPerMinute: 99 would be lower than the present limit of 100. A request can only raise limits.',
    )
    expect(refusals[2]?.body.error.message).toContain('the key has none')
    expect(refusals[4]?.body.error.message).toContain('$30 per month would be lower than')
    expect(me.limits).toEqual({ requestsPerMinute: 100, concurrent: 2 })
    expect(listed.data).toMatchObject([
      { id: asked.id, limits: {}, spendingLimit: { usd: 31, period: 'month' } },
    ])
    expect(await llm.keys.get(key.id)).toMatchObject({
      limits: { requestsPerMinute: 100, concurrent: 2 },
      spendingLimit: { usd: 31, period: 'month' },
    })
  })

  test('limits that were raised after the request stay as they are', async () => {
    const { key, secret } = await llm.keys.create({
      name: 'raised',
      limits: { requestsPerMinute: 5, concurrent: 1, tokensPerDay: 10 },
      spendingLimit: { usd: 1, period: 'day' },
    })
    const { body: asked } = await ask('/limit-requests', {
      key: secret,
      body: {
        limits: { requestsPerMinute: 6, concurrent: 2, tokensPerDay: 20 },
        spendingLimit: { usd: 2, period: 'day' },
      },
    })
    await llm.keys.update(key.id, {
      limits: { requestsPerMinute: 600, concurrent: 1 },
      spendingLimit: { usd: 50, period: 'month' },
    })

    const approved = await ask(`/limit-requests/${asked.id}/approve`, { body: {} })

    expect(approved.body.status).toBe('approved')
    expect(await llm.keys.get(key.id)).toMatchObject({
      limits: { requestsPerMinute: 600, concurrent: 2 },
      spendingLimit: { usd: 50, period: 'month' },
    })
    expect((await llm.keys.get(key.id)).limits).not.toHaveProperty('tokensPerDay')
  })

  test('the deletion of a tenant also removes it as the one who has decided', async () => {
    const { secret } = await llm.keys.create({ name: 'asks', limits: { requestsPerMinute: 5 } })
    const { secret: boss } = await llm.keys.create({ name: 'boss', tenant: 'bosses', scopes: ['admin'] })
    const body = { limits: { requestsPerMinute: 50 } }
    const { id } = (await ask('/limit-requests', { key: secret, body })).body
    const decided = await ask(`/limit-requests/${id}/refuse`, { key: boss, body: { note: 'No.' } })

    await llm.tenants.delete('bosses')

    const { body: list } = await ask('/me/limit-requests', { key: secret })
    expect(decided.body.decidedBy).toMatch(/^key_/)
    expect(list.data).toMatchObject([{ id, status: 'refused', note: 'No.' }])
    expect(list.data[0]).not.toHaveProperty('decidedBy')
  })

  test('the tiers of the app have their limits, weights and keys', async () => {
    await llm.keys.create({ name: 'golden', tier: 'gold' })
    await llm.keys.create({ name: '"tier":"free"', models: ['"tier":"free"'] })

    expect((await ask('/tiers')).body.data).toEqual([
      { name: 'free', limits: { requestsPerMinute: 5 }, weight: 1, keys: 0 },
      { name: 'gold', limits: { requestsPerMinute: 600 }, weight: 4, keys: 1 },
    ])
  })

  test('the cost over time agrees with the ledger to the nano-dollar, and rejected calls count as errors', async () => {
    const { key, secret } = await llm.keys.create({ name: '=SUM(A1)', limits: { requestsPerMinute: 3 } })
    const client = llm.as(await llm.keys.authenticate(secret))
    for (let count = 0; count < 3; count++) await client.chat(`Hello ${count}`, { model: 'tiny' })
    await expect(client.chat('Hello', { model: 'tiny' })).rejects.toMatchObject({ code: 'rate_limit' })

    const { body } = await ask(`/traffic?by=key&key=${key.id}`)
    const usage = await vi.waitFor(async () => {
      const [row] = (await ask(`/usage?by=key&key=${key.id}`)).body.data
      expect(row.calls).toBe(3)
      return row
    })
    const csv = await ask(`/usage.csv?by=key&key=${key.id}`)
    const total = await ask('/traffic?interval=day')

    expect(body.data).toMatchObject([
      { group: key.id, name: '=SUM(A1)', calls: 4, errors: 1, nanoUsd: usage.nanoUsd },
    ])
    expect(body.data[0].durationMs.p95).toBeGreaterThan(0)
    expect(total.body.data.at(-1).calls).toBeGreaterThanOrEqual(4)
    expect(csv.headers['content-disposition']).toBe('attachment; filename="usage-by-key.csv"')
    const [head, row] = csv.text.split('\r\n')
    expect(head).toMatch(/^group,name,calls,/)
    expect(row).toMatch(new RegExp(`^${key.id},'=SUM\\(A1\\),3,0,`))
    expect(row).toContain(`,${(Number(usage.nanoUsd) / 1e9).toFixed(9)},`)
    expect((await ask('/traffic?interval=minute')).status).toBe(400)
    expect((await ask('/traffic?from=yesterday')).status).toBe(400)
  })
})
