/** The batches of all tenants in the admin API, over HTTP. */
import { join } from 'node:path'
import { consoleRouter } from '@modelmount/console/express'
import { createLlm, type LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter } from '@modelmount/express'
import express from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const requests = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    custom_id: `item-${index}`,
    params: { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] },
  }))

async function open(options: LlmOptions) {
  const llm = await createLlm({
    engine: scriptedEngine('Hello.'),
    models: emptyFolder(),
    auth: 'host',
    ...options,
  })
  const operator = { id: 'ada', scopes: ['admin'] } as const
  const authenticate = (req: { headers: Record<string, unknown> }) =>
    req.headers['x-viewer'] ? { id: 'ben', scopes: ['admin:read'] as const } : operator
  const app = express().use('/admin', adminRouter(llm, { authenticate } as never))
  const { url, close } = await listen(app)
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const send = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url}/admin${path}`, init)
    return { status: response.status, text: await response.text() }
  }
  const get = async (path: string) => JSON.parse((await send(path)).text)
  return { llm, send, get }
}

describe.each(databases())('batches in the admin API in $name', ({ fresh }) => {
  test('are listed for all tenants, by status and in pages', async () => {
    const { llm, send, get } = await open({ database: await fresh(), batches: { run: false } })
    const ids: string[] = []
    for (const caller of [{ id: 'ann', tenant: 'acme' }, { id: 'ben' }, undefined])
      ids.push((await llm.batches.create(requests(2), { caller, metadata: { job: 'night' } })).id)
    await llm.batches.cancel(`${ids[1]}`)

    const { data, next } = await get('/batches?limit=2')
    const rest = await get(`/batches?limit=2&after=${next}`)
    const all = [...data, ...rest.data]
    expect(new Set(all.map(({ id }: { id: string }) => id))).toEqual(new Set(ids))
    expect(all.find(({ id }) => id === ids[0])).toEqual({
      ...{ id: ids[0], api: 'anthropic', endpoint: '/v1/messages', status: 'in_progress' },
      ...{ tenant: 'acme', caller: 'ann', models: ['tiny'], metadata: { job: 'night' } },
      counts: { processing: 2, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      ...Object.fromEntries(
        ['createdAt', 'expiresAt', 'startedAt'].map((name) => [name, expect.any(String)]),
      ),
    })
    const running = await get('/batches?status=in_progress')
    expect(running.data.map(({ id }: { id: string }) => id).sort()).toEqual([ids[0], ids[2]].sort())
    const invalid = await send('/batches?status=waiting')
    expect([invalid.status, JSON.parse(invalid.text)]).toMatchObject([
      400,
      { error: { code: 'invalid_request', param: 'status' } },
    ])
  })

  test('are canceled, which is recorded, and their results are read with the scope admin', async () => {
    const { llm, send, get } = await open({ database: await fresh() })
    const { id } = await llm.batches.create(requests(3), { caller: { id: 'ann', tenant: 'acme' } })
    await llm.batches.waitUntilEnded(id)

    const results = await send(`/batches/${id}/results`)
    expect(
      results.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).custom_id),
    ).toEqual(['item-0', 'item-1', 'item-2'])
    expect((await send(`/batches/${id}/results`, { headers: { 'x-viewer': '1' } })).status).toBe(403)
    expect((await send(`/batches/${id}`, { headers: { 'x-viewer': '1' } })).status).toBe(200)
    expect((await send(`/batches/${id}/cancel`, { method: 'POST' })).status).toBe(200)
    expect((await send('/batches/msgbatch_none/cancel', { method: 'POST' })).status).toBe(404)
    const { data } = await get('/audit?action=cancelBatch')
    expect(data).toHaveLength(2)
    expect(data).toContainEqual(
      expect.objectContaining({ caller: 'ada', target: id, tenant: 'acme', outcome: 'success' }),
    )
    expect(data).toContainEqual(
      expect.objectContaining({ target: 'msgbatch_none', outcome: 'failure', error: 'not_found' }),
    )
  })

  test('have no results before they have ended', async () => {
    const { llm, send } = await open({ database: await fresh(), batches: { run: false } })
    const { id } = await llm.batches.create(requests(1))

    const early = await send(`/batches/${id}/results`)

    expect([early.status, early.text]).toEqual([400, expect.stringContaining('has not ended')])
  })
})

/** The console also serves the admin API in an app without a database. */
async function openConsole(options: LlmOptions) {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: [], auth: 'host', ...options })
  const authenticate = () => ({ id: 'ada', scopes: ['admin'] }) as const
  const { url, close } = await listen(express().use('/console', consoleRouter(llm, { authenticate })))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const get = async (path: string) => {
    const response = await fetch(`${url}/console/admin${path}`)
    return { status: response.status, body: await response.json() }
  }
  return { llm, get }
}

test('batches with a separate database are in the admin API of an app without a database', async () => {
  const { llm, get } = await openConsole({ batches: { database: join(emptyFolder(), 'batches.db') } })
  const { id } = await llm.batches.create(requests(1))

  expect(await get('/batches')).toMatchObject({ status: 200, body: { data: [{ id, tenant: '' }] } })
  expect((await get('/audit')).status).toBe(400)
})

test('without any database, batches answer 400', async () => {
  const { get } = await openConsole({})

  const { status, body } = await get('/batches')

  expect([status, body]).toMatchObject([
    400,
    { error: { message: expect.stringContaining('need a database') } },
  ])
})
