/** The audit log of the admin API, over HTTP. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter } from '@modelmount/express'
import express from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

interface Entry {
  readonly id: string
  readonly action: string
  readonly outcome: string
}

describe.each(databases())('the audit log in $name', ({ fresh }) => {
  async function open() {
    const location = await fresh()
    const llm = await createLlm({
      engine: scriptedEngine('Hello.'),
      models: emptyFolder(),
      auth: 'keys',
      database: location,
    })
    const { url, close } = await listen(express().use('/admin', adminRouter(llm)))
    onTestFinished(async () => {
      await close()
      await llm.close()
    })
    const admin = await llm.keys.create({ name: 'console of Ada', scopes: ['admin'] })
    const send = async (path: string, body?: object, secret = admin.secret) => {
      const response = await fetch(`${url}/admin${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { 'x-api-key': secret, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: response.status, answer: (await response.json()) as never }
    }
    const entries = async (query = '') =>
      ((await send(`/audit${query}`)).answer as { readonly data: readonly Entry[] }).data
    return { llm, location, admin: admin.key, send, entries }
  }

  test('says who has changed what, with which key, and whether it worked', async () => {
    const { admin, send, entries } = await open()
    const settings = { name: 'laptop', tenant: 'acme', limits: { concurrent: 2 } }
    const { key } = (await send('/keys', settings)).answer as { key: { id: string } }
    const changed = { name: 'desktop', tier: null }
    await send(`/keys/${key.id}`, changed)
    await send(`/keys/${key.id}/revoke`, {})
    await send(`/keys/${key.id}/rotate`, { grace: '1h' })
    await send('/keys/key_none/revoke', {})

    const by = { caller: admin.id, key: { id: admin.id, name: 'console of Ada' } }
    const found = await entries()
    expect(found).toHaveLength(5)
    expect(found).toEqual(
      expect.arrayContaining(
        [
          { action: 'createKey', target: key.id, tenant: 'acme', changes: settings, outcome: 'success' },
          {
            ...{ action: 'updateKey', target: key.id, tenant: 'acme', outcome: 'success' },
            changes: { ...changed, before: { name: 'laptop', tier: null } },
          },
          { action: 'revokeKey', target: key.id, tenant: 'acme', changes: {}, outcome: 'success' },
          {
            ...{ action: 'rotateKey', target: key.id, tenant: 'acme', changes: { grace: '1h' } },
            ...{ outcome: 'failure', error: 'conflict' },
          },
          { action: 'revokeKey', target: 'key_none', changes: {}, outcome: 'failure', error: 'not_found' },
        ].map((entry) => ({
          ...by,
          ...(entry.target === key.id && { targetName: 'desktop' }),
          ...entry,
          id: expect.any(String),
          at: expect.any(String),
        })),
      ),
    )
  })

  test('says what a decision was about, and finds entries by the names of keys', async () => {
    const { admin, llm, send, entries } = await open()
    const limits = { requestsPerMinute: 10 }
    const spendingLimit = { usd: 1, period: 'day' } as const
    const { key } = await llm.keys.create({ name: 'Nightly', tenant: 'acme', limits, spendingLimit })
    const { id } = await llm.keys.requests.create(
      { key },
      { limits: { requestsPerMinute: 20 }, spendingLimit: { usd: 2, period: 'day' } },
    )
    await send(`/limit-requests/${id}/approve`, { note: 'Fine.' })
    await send(`/keys/${key.id}`, { expiresIn: '1d', limits: null })
    await send('/keys', { name: 'other' })

    const found = await entries('?target=NIGHTLY')

    expect(found).toMatchObject([
      {
        ...{ action: 'updateKey', targetName: 'Nightly' },
        changes: { limits: null, before: { limits: { requestsPerMinute: 20 }, expiresAt: null } },
      },
      {
        ...{ action: 'approveLimitRequest', target: id, targetName: 'Nightly', tenant: 'acme' },
        changes: {
          note: 'Fine.',
          limits: { requestsPerMinute: 20 },
          spendingLimit: { usd: 2, period: 'day' },
        },
      },
    ])
    expect(await entries('?caller=console%20of%20ada')).toHaveLength(3)
    expect(await entries(`?caller=${admin.id}&target=nightly`)).toHaveLength(2)
    expect(await entries('?caller=nightly')).toEqual([])

    await llm.tenants.delete('acme')
    expect(JSON.stringify(await entries())).not.toMatch(/Nightly|Fine/)
  })

  test('says which call was canceled', async () => {
    const { llm, send, entries } = await open()
    const { key } = await llm.keys.create({ name: 'Laptop', tenant: 'acme' })
    const client = llm.as({ id: key.id, tenant: 'acme', key: { id: key.id, name: 'Laptop' } })
    const cancelRunning = async (): Promise<void> => {
      for await (const _ of client.chat('Hi', { model: 'tiny', stream: true })) {
        const { data } = (await send('/calls')).answer as { data: readonly { readonly id: string }[] }
        await send(`/calls/${data[0]?.id}/cancel`, {})
      }
    }

    await expect(cancelRunning()).rejects.toMatchObject({ code: 'permission' })

    expect(await entries('?action=cancelCall')).toMatchObject([
      { tenant: 'acme', changes: { model: 'tiny:latest', caller: key.id, keyName: 'Laptop' } },
    ])
  })

  test('has no entry for reads, rejected requests, and attempts of users that change nothing', async () => {
    const { llm, send, entries } = await open()
    const { secret } = await llm.keys.create({ name: 'user', limits: { concurrent: 1 } })
    const ask = { limits: { concurrent: 5 } }

    const statuses = [
      await send('/keys'),
      await send('/keys', { name: '' }),
      await send('/keys', { name: 'mine' }, secret),
      await send('/keys', { name: 'mine' }, 'wrong'),
      await send('/limit-requests', ask, secret),
      await send('/limit-requests', ask, secret),
    ].map(({ status }) => status)

    expect(statuses).toEqual([200, 400, 403, 401, 201, 409])
    expect((await entries()).map(({ action, outcome }) => [action, outcome])).toEqual([
      ['createLimitRequest', 'success'],
    ])
  })

  test('shows who tried when the process was killed before the end of the change', async () => {
    const { location, admin, send, entries } = await open()
    const script = `
      import { createLlm } from '@modelmount/core'
      const llm = await createLlm({ auth: 'keys', models: [], database: process.argv[1] })
      const caller = { id: 'ada' }
      await llm.audit.record({ caller, action: 'revokeKey', target: process.argv[2] }, () => {
        console.log('changing')
        return new Promise(() => setInterval(() => {}, 1_000))
      })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, location, admin.id], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit

    expect((await send(`/keys/${admin.id}`)).answer).toMatchObject({ status: 'active' })
    expect(await entries()).toMatchObject([
      { caller: 'ada', action: 'revokeKey', target: admin.id, tenant: admin.id, outcome: 'unknown' },
    ])
  })

  test('changes nothing while the log cannot be written', async () => {
    const { llm, location, send } = await open()
    const database = await openDatabase(location)
    await database.query('ALTER TABLE modelmount_audit RENAME TO modelmount_elsewhere')
    await database.close()

    expect((await send('/keys', { name: 'unseen' })).status).toBe(500)
    expect(await llm.keys.list()).toHaveLength(1)
  })

  test('has pages and filters, and rejects invalid times', async () => {
    const { admin, send, entries } = await open()
    for (const name of ['a', 'b', 'c']) await send('/keys', { name })
    await send('/keys/key_none/revoke', {})

    const first = (await send('/audit?action=createKey&limit=2')).answer as { data: Entry[]; next: string }
    const rest = await entries(`?action=createKey&limit=2&after=${first.next}`)
    expect(new Set([...first.data, ...rest].map(({ id }) => id)).size).toBe(3)
    expect(await entries(`?caller=${admin.id}`)).toHaveLength(4)
    expect(await entries('?target=key_none')).toMatchObject([{ action: 'revokeKey' }])
    const today = new Date().toISOString().slice(0, 10)
    expect(await entries(`?from=${today}&to=${today}`)).toHaveLength(4)
    expect(await entries(`?to=${today}T00:00:00Z`)).toEqual([])
    expect(await send('/audit?from=yesterday')).toMatchObject({
      status: 400,
      answer: {
        error: { code: 'invalid_request', message: expect.stringMatching(/^from: /), param: 'from' },
      },
    })
  })
})
