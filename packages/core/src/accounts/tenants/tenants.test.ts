import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import { createLlm } from '../../create-llm.ts'
import type { Llm } from '../../llm.ts'
import type { Database } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'
import type { Caller } from '../auth/caller.ts'
import { openDeletionWatcher } from './deletion-watcher.ts'
import { KeyData } from './key-data.ts'
import { Tenants, type TenantsParts } from './tenants.ts'
import { UsageData } from './usage-data.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const expensive = { '*': { inputPerMillionUsd: 100_000, outputPerMillionUsd: 100_000 } }

async function open(database?: string, given: object = prices): Promise<Llm> {
  const llm = await createLlm({
    engine: scriptedEngine('one two three'),
    ...(database !== undefined && { database, prices: given as typeof prices }),
  })
  onTestFinished(() => llm.close())
  return llm
}

async function connect(location: string): Promise<Database> {
  const database = await openDatabase(location)
  onTestFinished(() => database.close())
  return database
}

async function ask(llm: Llm, caller: Caller): Promise<void> {
  const { signal } = new AbortController()
  const generation = await llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: ['Hi'] } },
    { signal, caller },
  )
  for await (const _ of generation);
}

/** Creates two keys of the tenant `left`, with calls, and one of the tenant `stays`. */
async function fill(llm: Llm): Promise<void> {
  for (const tenant of ['left', 'left', 'stays']) {
    const { key } = await llm.keys.create({
      name: `of ${tenant}`,
      tenant,
      spendingLimit: { usd: 5, period: 'day' },
    })
    await llm.keys.update(key.id, { limits: { concurrent: 1 } })
    await llm.keys.requests.create({ key }, { limits: { concurrent: 2 } })
    await ask(llm, { id: key.id, tenant, key, spendingLimit: { usd: 5, period: 'day' } })
  }
  await ask(llm, { id: 'user', tenant: 'left' })
}

const nothing = { revokeKeys: async () => 0, endCalls: async () => 0, deletePromptStates: async () => 0 }

/** All rows that name the tenant, one of its callers or one of its keys. */
async function rowsOf(
  database: Database,
  tenant: string,
  callers: readonly string[],
): Promise<readonly string[]> {
  const ids = [tenant, ...callers]
  const found: string[] = []
  for (const [table, columns] of Object.entries({
    keys: ['id', 'tenant'],
    key_secrets: ['key_id'],
    limit_requests: ['key_id'],
    calls: ['caller', 'tenant'],
    usage_days: ['caller', 'tenant'],
    spending: ['caller'],
    funds: ['caller'],
  }))
    for (const column of columns) {
      const rows = await database.query(
        `SELECT 1 AS found FROM modelmount_${table} WHERE ${column} IN (${ids.map(() => '?').join(', ')})`,
        ids,
      )
      if (rows.length > 0) found.push(`${table}.${column}`)
    }
  return found
}

describe.each(databases())('deleting a tenant in $name', ({ fresh }) => {
  test('deletes its keys and usage, says how many, and leaves those of others', async () => {
    const location = await fresh()
    const llm = await open(location)
    await fill(llm)
    const keys = await llm.keys.list()
    const callers = keys.filter(({ tenant }) => tenant === 'left').map(({ id }) => id)
    const [other = ''] = keys.filter(({ tenant }) => tenant === 'stays').map(({ id }) => id)
    const database = await connect(location)
    const ofOthers = await rowsOf(database, 'stays', [other])

    const result = await llm.tenants.delete('left')

    expect(result).toEqual({
      tenant: 'left',
      revokedKeys: 2,
      endedCalls: 0,
      promptStates: 0,
      deleted: {
        ...{ batches: 0, files: 0, responses: 0, conversations: 0 },
        ...{
          keys: 2,
          limitRequests: 2,
          calls: 3,
          usageSums: 3,
          spending: 3,
          erasedAuditEntries: 0,
          trafficSums: 6,
        },
      },
    })
    expect(await rowsOf(database, 'left', [...callers, 'user'])).toEqual([])
    expect(await rowsOf(database, 'stays', [other])).toEqual(ofOthers)
    expect(ofOthers).toContain('limit_requests.key_id')
    expect((await llm.usage.report({ by: 'tenant' })).map(({ group }) => group)).toEqual(['stays'])
  })

  test('keeps anonymous sums by option, which add up to the same cost', async () => {
    const llm = await open(await fresh())
    for (const id of ['a', 'b']) await ask(llm, { id, tenant: 'left' })
    const before = await llm.usage.report({ by: 'model' })

    const { deleted } = await llm.tenants.delete('left', { usage: 'anonymize' })

    expect(deleted).toMatchObject({ calls: 2, anonymizedSums: 2 })
    expect(await llm.usage.report({ by: 'model' })).toEqual(before)
    for (const by of ['tenant', 'key'] as const)
      expect(await llm.usage.report({ by })).toMatchObject([{ group: '(deleted)', calls: 2 }])
    expect(await llm.usage.calls()).toEqual([])
    await ask(llm, { id: 'c', tenant: 'another' })
    await llm.tenants.delete('another', { usage: 'anonymize' })
    expect(await llm.usage.report({ by: 'tenant' })).toMatchObject([{ group: '(deleted)', calls: 3 }])
  })

  test('deletes the anonymous sums as the tenant (deleted)', async () => {
    const llm = await open(await fresh())
    await ask(llm, { id: 'a', tenant: 'left' })
    await llm.tenants.delete('left', { usage: 'anonymize' })

    expect((await llm.tenants.delete('(deleted)', { usage: 'anonymize' })).deleted).toMatchObject({
      usageSums: 1,
    })
    expect(await llm.usage.report({ by: 'tenant' })).toEqual([])
  })

  test('deletes what killed calls have handed out, so that it is not charged later', async () => {
    const location = await fresh()
    const llm = await open(location)
    const database = await connect(location)
    const runUntil = Date.now() + 9_000
    for (const [id, caller, tenant] of [
      ['1', 'ann', 'left'],
      ['2', 'left', null],
      ['3', 'ben', 'stays'],
    ] as const)
      await database.query(
        'INSERT INTO modelmount_funds (id, caller, tenant, at, nano_usd, expires_at) VALUES (?, ?, ?, 1, 0, ?)',
        [id, caller, tenant, runUntil],
      )

    await llm.tenants.delete('left')

    expect(await database.query('SELECT id FROM modelmount_funds')).toEqual([{ id: '3' }])
  })

  test('can be repeated, and then deletes nothing', async () => {
    const llm = await open(await fresh())
    await fill(llm)
    await llm.tenants.delete('left')

    const { revokedKeys, deleted } = await llm.tenants.delete('left')

    expect([revokedKeys, ...Object.values(deleted)]).toEqual(Array(12).fill(0))
  })

  test('works in batches', async () => {
    const location = await fresh()
    await open(location)
    const database = await connect(location)
    const numbers = Array.from({ length: 450 }, (_, index) => index)
    await database.query(
      `INSERT INTO modelmount_keys (id, name, tenant, hint, granted, created_at) VALUES
       ${numbers.map((number) => `('key_${number}', 'k', 'left', '', '{}', 1)`).join(', ')}`,
    )
    await database.query(
      `INSERT INTO modelmount_usage_days (day, caller, tenant, model, calls, input_tokens, cached_input_tokens,
         cache_write_tokens, output_tokens, nano_usd, unpriced_calls) VALUES
       ${numbers.map((number) => `('2025-01', 'user ${number % 250}', 'left', 'm${number}', 1, 0, 0, 0, 0, 1, 0)`).join(', ')}`,
    )
    const llm = await open(location)

    const { revokedKeys, deleted } = await llm.tenants.delete('left', { usage: 'anonymize' })

    expect([revokedKeys, deleted.keys, deleted.anonymizedSums]).toEqual([450, 450, 450])
    expect(await llm.usage.report({ by: 'tenant', from: new Date('2025-01-01') })).toMatchObject([
      { calls: 450 },
    ])
  })

  test.each(['delete', 'anonymize'] as const)(
    'after a failure at any query, another deletion (%s) deletes the rest',
    async (usage) => {
      const location = await fresh()
      const llm = await open(location)
      const database = await connect(location)
      const deletion = { tenant: 'left', usage }
      let failures = 0
      for (let isDone = false; !isDone; failures++) {
        await fill(llm)
        const keys = await llm.keys.list()
        const callers = keys.filter(({ tenant }) => tenant === 'left').map(({ id }) => id)
        for (const id of callers) await llm.keys.revoke(id)
        const before = await llm.usage.report({ by: 'model' })
        const failing = failingAfter(database, failures)
        const stores = [new UsageData(failing), new KeyData(failing)]
        isDone = await Promise.all(stores.map((store) => store.deleteTenant(deletion))).then(
          () => true,
          () => false,
        )

        await llm.tenants.delete('left', { usage })

        expect(await rowsOf(database, 'left', [...callers, 'user'])).toEqual([])
        if (usage === 'anonymize') expect(await llm.usage.report({ by: 'model' })).toEqual(before)
      }
      expect(failures).toBeGreaterThan(12)
    },
  )

  test('a key that is created while the tenant is deleted is deleted, too', async () => {
    const location = await fresh()
    const llm = await open(location)
    await llm.keys.create({ name: 'before', tenant: 'left' })
    const database = await connect(location)
    let created = 0
    const create: TenantsParts['endCalls'] = async () => {
      if (created++ === 0) await llm.keys.create({ name: 'meanwhile', tenant: 'left' })
      return 1
    }
    const tenants = await openTenants(database, {
      ...nothing,
      revokeKeys: (tenant) => llm.keys.revokeTenant(tenant),
      endCalls: create,
    })

    const result = await tenants.delete('left')

    expect(result).toMatchObject({ revokedKeys: 2, endedCalls: 2, deleted: { keys: 2 } })
    expect(await llm.keys.list()).toEqual([])
  })

  test('deletes a tenant whose id no database can store as text', async () => {
    const llm = await open(await fresh())
    const tenant = `\0\ud800${'x'.repeat(30_000)}`
    await ask(llm, { id: 'user', tenant })

    expect((await llm.tenants.delete(tenant)).deleted).toMatchObject({ calls: 1, usageSums: 1 })
  })

  test('a caller of another tenant keeps the spending that its limit counts', async () => {
    const llm = await open(await fresh(), expensive)
    const spendingLimit = { usd: 0.1, period: 'lifetime' } as const
    await ask(llm, { id: 'ann', tenant: 'left' })
    const { key } = await llm.keys.create({ name: 'moved', tenant: 'left', spendingLimit })
    await ask(llm, { id: key.id, tenant: 'left' })
    await ask(llm, { id: 'ann', tenant: 'stays' })
    await llm.keys.update(key.id, { tenant: 'stays' })

    expect((await llm.tenants.delete('left')).deleted).toMatchObject({ keys: 0, spending: 0 })

    for (const id of ['ann', key.id])
      await expect(ask(llm, { id, tenant: 'stays', spendingLimit })).rejects.toMatchObject({ code: 'quota' })
  })

  test('deletes the spending of a caller whose calls were all rejected', async () => {
    const location = await fresh()
    const llm = await open(location, expensive)
    const caller = { id: 'left', spendingLimit: { usd: 0.000_001, period: 'lifetime' } } as const
    await expect(ask(llm, caller)).rejects.toMatchObject({ code: 'quota' })

    expect((await llm.tenants.delete('left')).deleted).toMatchObject({ calls: 0, spending: 1 })

    expect(await rowsOf(await connect(location), 'left', [])).toEqual([])
  })

  test.each([
    ['first', ['left', 'stays']],
    ['last', ['stays', 'left']],
  ] as const)('a caller of two tenants keeps the usage of the other one, deleted: %s', async (_, order) => {
    const llm = await open(await fresh(), expensive)
    const spendingLimit = { usd: 1_000, period: 'lifetime' } as const
    for (const tenant of order) await ask(llm, { id: 'ann', tenant, spendingLimit })
    await ask(llm, { id: 'ann', tenant: 'stays', spendingLimit })
    if (order[1] === 'left') await ask(llm, { id: 'ann', tenant: 'left', spendingLimit })
    const before = (await llm.usage.calls()).filter(({ tenant }) => tenant === 'stays')

    const { deleted } = await llm.tenants.delete('left')

    expect(deleted).toMatchObject({ calls: order[1] === 'left' ? 2 : 1, spending: 0 })
    expect(await llm.usage.calls()).toEqual(before)
    expect(await llm.usage.report({ by: 'tenant' })).toMatchObject([
      { group: 'stays', calls: 2, nanoUsd: before.reduce((sum, { nanoUsd }) => sum + BigInt(nanoUsd), 0n) },
    ])
  })

  test('a caller whose key is deleted gets a typed error for a limit request', async () => {
    const llm = await open(await fresh())
    const { key } = await llm.keys.create({ name: 'one', tenant: 'left' })
    await llm.tenants.delete('left')

    await expect(llm.keys.requests.create({ key }, { limits: { concurrent: 1 } })).rejects.toMatchObject({
      code: 'not_found',
    })
  })
})

describe.each(databases())('in another app with the same $name', ({ fresh }) => {
  /** Opens the tenants of an app, and records what its parts do. */
  async function openApp(location: string, parts: Partial<TenantsParts> = {}) {
    const database = await connect(location)
    const did: string[] = []
    const record =
      (what: string, count = 0) =>
      async (tenant: string): Promise<number> => {
        did.push(`${what} ${tenant}`)
        return count
      }
    const watcher = await openDeletionWatcher(database, (cause) => {
      throw cause
    })
    const tenants = new Tenants(
      {
        stores: [],
        revokeKeys: async () => 0,
        endCalls: record('end'),
        deletePromptStates: record('states'),
        ...parts,
      },
      watcher,
    )
    onTestFinished(() => tenants.close())
    return { database, watcher, tenants, did, record }
  }
  type App = Awaited<ReturnType<typeof openApp>>

  const lookIn = async ({ watcher, did }: App): Promise<readonly string[]> => {
    did.length = 0
    await watcher.look()
    return [...did]
  }
  const age = ({ database }: App, seconds: number) =>
    database.query(
      `UPDATE modelmount_tenant_deletions SET requested_at = requested_at - ${seconds * 1_000},
         finished_at = finished_at - ${seconds * 1_000}`,
    )

  test('calls end once, and prompt states are deleted again for a minute', async () => {
    const location = await fresh()
    const [one, two] = [await openApp(location), await openApp(location)]
    await one.tenants.delete('left')

    expect(await lookIn(two)).toEqual(['end left', 'states left'])
    expect(await lookIn(two)).toEqual(['states left'])
    expect(await lookIn(one)).toEqual(['states left'])
    await one.tenants.delete('left')
    expect(await lookIn(two)).toEqual(['end left', 'states left'])
  })

  test('deletions before its start end no calls, and those of the last hour are handled after a pause', async () => {
    const location = await fresh()
    const [one, two] = [await openApp(location), await openApp(location)]
    await one.tenants.delete('left')
    const started = await openApp(location)
    expect(await lookIn(started)).toEqual(['states left'])

    await age(one, 3_500)
    expect(await lookIn(started)).toEqual(['end left', 'states left'])
    await age(one, 100)
    expect(await lookIn(two)).toEqual([])
    expect(await one.database.query('SELECT id FROM modelmount_tenant_deletions')).toEqual([])
  })

  test('a deletion that failed to end calls is tried again', async () => {
    const location = await fresh()
    const one = await openApp(location)
    let attempts = 0
    const endCalls = async (): Promise<number> => {
      if (attempts++ === 0) throw new Error('The database is locked.')
      return 0
    }
    const two = await openApp(location, { endCalls })
    await one.tenants.delete('left')

    await expect(two.watcher.look()).rejects.toThrow('locked')
    await two.watcher.look()
    await two.watcher.look()

    expect(attempts).toBe(2)
  })

  test('a deletion in progress is not handled by the app that runs it', async () => {
    const location = await fresh()
    const app: App = await openApp(location, {
      endCalls: async () => {
        await app.watcher.look()
        return 1
      },
    })

    expect(await app.tenants.delete('left')).toMatchObject({ endedCalls: 1 })

    expect(app.did).toEqual(['states left'])
  })

  test('what its calls have stored since is deleted when the deletion has ended', async () => {
    const location = await fresh()
    const llm = await open(location)
    const one = await openApp(location)
    const two = await openApp(location, { stores: [new UsageData(await connect(location))] })
    const callers = async () => (await llm.usage.calls()).map(({ caller }) => caller)
    await two.watcher.runExclusive('left', async () => {
      await ask(llm, { id: 'running', tenant: 'left' })
      await one.tenants.delete('left')
    })
    expect(await callers()).toEqual(['running'])

    await two.watcher.look()
    expect(await callers()).toEqual([])

    await age(one, 1)
    await ask(llm, { id: 'new', tenant: 'left' })
    await two.watcher.look()
    expect(await callers()).toEqual(['new'])
  })
})

test.each(['', undefined, 7])('rejects the id %j', async (id) => {
  const llm = await open(':memory:')

  await expect(llm.tenants.delete(id as string)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: 'id' },
  })
})

test('rejects an unknown kind of deletion of usage', async () => {
  const llm = await open(':memory:')

  await expect(llm.tenants.delete('left', { usage: 'keep' as 'delete' })).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: 'usage' },
  })
})

test('gives up when keys are created again and again', async () => {
  const tenants = new Tenants({ ...nothing, stores: [], revokeKeys: async () => 1 }, undefined)

  await expect(tenants.delete('left')).rejects.toMatchObject({ code: 'conflict' })
})

test('without a database, reaches the calls and states of this app', async () => {
  const llm = await open()
  const read = (async () => {
    for (;;) await ask(llm, { id: 'ann', tenant: 'left' })
  })()
  await ask(llm, { id: 'ben' })

  expect(await llm.tenants.delete('left')).toMatchObject({ revokedKeys: 0, endedCalls: 1, deleted: {} })
  await expect(read).rejects.toMatchObject({ code: 'permission' })
})

/** Opens tenants whose stores are those of the database. */
async function openTenants(database: Database, parts: Omit<TenantsParts, 'stores'>): Promise<Tenants> {
  const watcher = await openDeletionWatcher(database, () => {})
  const tenants = new Tenants({ stores: [new UsageData(database), new KeyData(database)], ...parts }, watcher)
  onTestFinished(() => tenants.close())
  return tenants
}

/** A database whose queries in transactions fail after this many. */
function failingAfter(database: Database, count: number): Database {
  let left = count
  return {
    ...database,
    clock: database.clock,
    query: (sql, parameters) => database.query(sql, parameters),
    transaction: (work) =>
      database.transaction(({ query }) =>
        work({
          query: async (sql, parameters) => {
            if (left-- <= 0) throw new Error('The process was killed.')
            return query(sql, parameters)
          },
        }),
      ),
    close: async () => {},
  }
}
