import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import { createLlm } from '../../create-llm.ts'
import { LlmError } from '../../errors.ts'
import type { Llm } from '../../llm.ts'
import { type Database, type SqlValue, UncertainOutcome } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'
import { openKeys } from '../keys/keys.ts'
import { Retention } from '../usage/retention.ts'
import { openLog } from './audit-log.ts'

const ada = { id: 'ada' }
const fail = async (): Promise<never> => {
  throw new LlmError('conflict', 'No.')
}

describe.each(databases())('the audit log in $name', ({ fresh }) => {
  async function open(location?: string): Promise<{ llm: Llm; database: Database }> {
    const path = location ?? (await fresh())
    const llm = await createLlm({ engine: scriptedEngine('one'), models: [], auth: 'keys', database: path })
    const database = await openDatabase(path)
    onTestFinished(async () => {
      await database.close()
      await llm.close()
    })
    return { llm, database }
  }

  test('has an entry while a change runs, and its outcome afterwards', async () => {
    const { llm } = await open()
    const key = { id: 'key_1', name: 'console of Ada' }

    await llm.audit.record(
      {
        caller: { id: 'key_1', tenant: 'ops', key },
        action: 'createKey',
        changes: { name: 'laptop' },
        describe: ({ made }) => ({ target: made, tenant: 'acme' }),
      },
      async () => {
        expect(await llm.audit.list()).toMatchObject([
          { caller: 'key_1', key, action: 'createKey', changes: { name: 'laptop' }, outcome: 'unknown' },
        ])
        return { made: 'key_2' }
      },
    )

    const [entry] = await llm.audit.list()
    expect(entry).toMatchObject({ target: 'key_2', tenant: 'acme', outcome: 'success' })
    expect(entry).not.toHaveProperty('error')
    expect(Math.abs(Date.now() - (entry?.at.getTime() ?? 0))).toBeLessThan(60_000)
  })

  test('names the error of a failed change, and claims no failure that the database did not confirm', async () => {
    const { llm } = await open()
    const attempt = (make: () => Promise<never>, keepsFailures?: boolean) =>
      llm.audit.record({ caller: ada, action: 'revokeKey', keepsFailures }, make).catch(({ code }) => code)

    expect(await attempt(fail)).toBe('conflict')
    expect(await attempt(fail, false)).toBe('conflict')
    const uncertain = async () => {
      throw new UncertainOutcome('The connection was lost.')
    }
    expect(await attempt(uncertain, false)).toBe('unavailable')

    const outcomes = (await llm.audit.list()).map(({ outcome, error }) => ({ outcome, error }))
    expect(outcomes).toHaveLength(2)
    expect(outcomes).toContainEqual({ outcome: 'failure', error: 'conflict' })
    expect(outcomes).toContainEqual({ outcome: 'unknown', error: 'unavailable' })
  })

  test('makes no change that it cannot record', async () => {
    const { llm, database } = await open()
    await database.query('ALTER TABLE modelmount_audit RENAME TO modelmount_elsewhere')
    let isMade = false

    const change = llm.audit.record({ caller: ada, action: 'createKey' }, async () => {
      isMade = true
    })

    await expect(change).rejects.toThrow()
    expect(isMade).toBe(false)
  })

  test('does not fail a change whose outcome it cannot write', async () => {
    const database = await openDatabase(await fresh())
    onTestFinished(() => database.close())
    const errors: unknown[] = []
    await openKeys(database)
    const audit = await openLog(database, (cause) => errors.push(cause))

    const result = await audit.record({ caller: ada, action: 'createKey' }, async () => {
      await database.query('ALTER TABLE modelmount_audit RENAME TO modelmount_elsewhere')
      return 'made'
    })

    expect(result).toBe('made')
    expect(errors).toHaveLength(1)
  })

  test('stores no secret, and bounds what it stores', async () => {
    const { llm } = await open()
    const { secret, key } = await llm.keys.create({ name: 'laptop' })
    const changes = {
      name: `my ${secret}`,
      password: 'swordfish',
      nested: [{ apiKey: 'swordfish', tokensPerMinute: 5 }],
      models: Array.from({ length: 1_000 }, () => 'tiny'),
      control: 'a\0b\u{d800}',
      usd: 5n,
    }
    const caller = { id: secret, key: { id: key.id, name: `${secret}\0` } }

    await llm.audit.record({ caller, action: 'updateKey', target: secret, changes }, async () => {})

    const [entry] = await llm.audit.list()
    expect(JSON.stringify(entry)).not.toContain(secret.slice(-43))
    expect(JSON.stringify(entry)).not.toContain('swordfish')
    expect(entry?.changes).toEqual({
      name: `my ${secret.slice(0, -43)}(hidden)`,
      password: '(hidden)',
      nested: [{ apiKey: '(hidden)', tokensPerMinute: 5 }],
      models: '(7012 characters)',
      control: changes.control,
      usd: '5',
    })
    expect(await llm.audit.list({ target: secret })).toHaveLength(1)
  })

  test('lists the newest first, in pages, by caller, action, target and time', async () => {
    const { llm, database } = await open()
    for (const [index, [caller, action, target]] of [
      ['ada', 'createKey', 'a'],
      ['ben', 'createKey', 'b'],
      ['ada', 'revokeKey', 'a'],
      ['ada', 'revokeKey', 'b'],
    ].entries()) {
      await llm.audit.record({ caller: { id: `${caller}` }, action: `${action}`, target }, async () => {})
      await database.query('UPDATE modelmount_audit SET at = ? WHERE at > 1000', [(index + 1) * 100])
    }
    const timesOf = async (query: Parameters<Llm['audit']['list']>[0]) =>
      (await llm.audit.list(query)).map(({ at }) => at.getTime())

    expect(await timesOf({})).toEqual([400, 300, 200, 100])
    expect(await timesOf({ caller: 'ada' })).toEqual([400, 300, 100])
    expect(await timesOf({ action: 'createKey' })).toEqual([200, 100])
    expect(await timesOf({ target: 'a', caller: 'ada', action: 'revokeKey' })).toEqual([300])
    expect(await timesOf({ from: new Date(200), to: new Date(400) })).toEqual([300, 200])
    const [first] = await llm.audit.list({ caller: 'ada', limit: 1 })
    expect(await timesOf({ caller: 'ada', limit: 1, after: first?.id })).toEqual([300])
    await expect(llm.audit.list({ after: 'audit_none\0' })).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param: 'after' },
    })
    await expect(llm.audit.list({ from: new Date('soon') })).rejects.toMatchObject({
      details: { param: 'from' },
    })
    await expect(llm.audit.list({ limit: 1_001 })).rejects.toMatchObject({ details: { param: 'limit' } })
  })

  test('checks the caller, and changes nothing for an invalid one', async () => {
    const { llm } = await open()
    const make = async () => expect.unreachable()

    const caller = { name: 'Ada' } as never
    await expect(llm.audit.record({ caller, action: 'revokeKey' }, make)).rejects.toThrow('caller.id: ')
    await llm.audit.record({ caller: { id: 7 as never }, action: 'revokeKey' }, async () => {})
    expect(await llm.audit.list({ caller: '7' })).toHaveLength(1)
  })

  test('finds the tenant of a key and of a limit request', async () => {
    const { llm } = await open()
    const [{ key: own }, { key: shared }] = [
      await llm.keys.create({ name: 'own' }),
      await llm.keys.create({ name: 'shared', tenant: 'acme', limits: { concurrent: 1 } }),
    ]
    const { id } = await llm.keys.requests.create({ key: shared }, { limits: { concurrent: 1 } })

    for (const target of [own.id, shared.id, id, 'other'])
      await llm.audit.record({ caller: ada, action: 'updateKey', target }, async () => {})

    const entries = await llm.audit.list()
    expect(Object.fromEntries(entries.map(({ target, tenant }) => [target, tenant]))).toEqual({
      [own.id]: own.id,
      [shared.id]: 'acme',
      [id]: 'acme',
      other: undefined,
    })
  })

  test('forgets what a deleted tenant has done and what its data contained, and keeps who changed it when', async () => {
    const { llm, database } = await open()
    const { key } = await llm.keys.create({ name: 'laptop of Zoe', tenant: 'zoe & co' })
    const zoe = { id: key.id, tenant: 'zoe & co', key: { id: key.id, name: 'laptop of Zoe' } }
    const record = (caller: object, action: string, target: string, changes = {}) =>
      llm.audit.record({ caller: caller as never, action, target, changes }, async () => {})
    await record(ada, 'updateKey', key.id, { name: 'laptop of Zoe' })
    await record(zoe, 'createKey', 'key_of_others', { name: 'theirs' })
    await record(ada, 'createKey', 'key_3', { name: 'stays' })

    const { deleted } = await llm.audit.record(
      { caller: ada, action: 'deleteTenant', target: 'zoe & co', tenant: 'zoe & co' },
      () => llm.tenants.delete('zoe & co'),
    )

    expect(deleted.erasedAuditEntries).toBe(3)
    const entries = await llm.audit.list()
    expect(entries.map(({ id: _, at: _at, ...entry }) => entry)).toEqual(
      expect.arrayContaining([
        {
          caller: 'ada',
          action: 'updateKey',
          target: '(deleted)',
          tenant: '(deleted)',
          changes: {},
          outcome: 'success',
        },
        {
          caller: '(deleted)',
          action: 'createKey',
          target: 'key_of_others',
          changes: { name: 'theirs' },
          outcome: 'success',
        },
        {
          caller: 'ada',
          action: 'createKey',
          target: 'key_3',
          changes: { name: 'stays' },
          outcome: 'success',
        },
        {
          caller: 'ada',
          action: 'deleteTenant',
          target: '(deleted)',
          tenant: '(deleted)',
          changes: {},
          outcome: 'success',
        },
      ]),
    )
    const stored = JSON.stringify(await database.query('SELECT * FROM modelmount_audit'))
    for (const text of ['Zoe', 'zoe', key.id]) expect(stored).not.toContain(text)
  })

  test('is kept for a year', async () => {
    const { llm, database } = await open()
    for (const days of [367, 365]) {
      await llm.audit.record({ caller: ada, action: `${days} days ago` }, async () => {})
      const at = Date.now() - days * 86_400_000
      await database.query('UPDATE modelmount_audit SET at = ? WHERE action = ?', [at, `${days} days ago`])
    }
    const errors: unknown[] = []
    const onError = (cause: unknown) => errors.push(cause)
    const retention = new Retention(database, { clock: () => database.clock, retentionMs: 1_000, onError })
    await retention.run()
    await retention.close()

    expect(errors).toEqual([])
    expect((await llm.audit.list()).map(({ action }) => action)).toEqual(['365 days ago'])
  })
})

test('a list with any filters reads an index in its order, and sorts nothing', async () => {
  const database = await openDatabase(':memory:')
  onTestFinished(() => database.close())
  await openKeys(database)
  const queries: (readonly [sql: string, parameters: readonly SqlValue[]])[] = []
  const audit = await openLog(
    {
      ...database,
      transaction: (...given) => database.transaction(...given),
      query: (sql, parameters = []) => {
        queries.push([sql, parameters])
        return database.query(sql, parameters)
      },
    },
    () => {},
  )
  const times = { from: new Date(1_000), to: new Date(Date.now() + 60_000) }
  await audit.record({ caller: ada, action: 'createKey', target: 'key_1' }, async () => {})
  const [{ id: after } = { id: '' }] = await audit.list()

  for (const filters of [{}, { caller: 'ada' }, { action: 'createKey' }, { target: 'key_1' }])
    for (const more of [{}, times, { after }, { caller: 'ada', action: 'createKey', after }])
      await audit.list({ ...filters, ...more })

  const lists = queries.filter(([sql]) => sql.includes('ORDER BY'))
  expect(lists).toHaveLength(17)
  for (const [sql, parameters] of lists) {
    const plan = await database.query<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, parameters)
    expect(plan.map(({ detail }) => detail)).toEqual([expect.stringMatching(/USING INDEX modelmount_audit_/)])
  }
})

test('without a database, changes are made and not recorded', async () => {
  const llm = await createLlm({ engine: scriptedEngine('one'), models: [] })
  onTestFinished(() => llm.close())

  expect(await llm.audit.record({ caller: ada, action: 'cancelCall' }, async () => 'made')).toBe('made')
  await expect(llm.audit.list()).rejects.toThrow(TypeError)
})
