import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import type { Database, SqlValue } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import { type Keys, openKeys } from './keys.ts'
import type { KeySettings } from './settings.ts'

const refused = {
  code: 'authentication',
  message: 'Invalid API key: it is unknown, revoked or expired.',
  details: {},
}

describe.each([...databases(), { name: 'SQLite in memory', fresh: async () => ':memory:' }])(
  '$name',
  ({ name, fresh }) => {
    let location: string
    let database: Database
    let keys: Keys
    /** Added to the database's clock. */
    let aheadMs: number

    beforeEach(async () => {
      aheadMs = 0
      location = await fresh()
      database = await openDatabase(location)
      keys = await openKeys(withClock(database))
    })
    afterEach(async () => {
      await keys.close()
      await database.close()
    })

    const withClock = (database: Database): Database => ({
      get clock() {
        return `(${database.clock} + ${aheadMs})`
      },
      skipLocked: database.skipLocked,
      query: (sql, parameters) => database.query(sql, parameters),
      transaction: (work, options) => database.transaction(work, options),
      close: () => database.close(),
    })

    test('creates a key whose secret authenticates its caller', async () => {
      const settings: KeySettings = {
        name: 'Ada’s "laptop"; -- ',
        scopes: ['inference', 'models'],
        models: ['tiny'],
        limits: {
          requestsPerMinute: 60,
          tokensPerMinute: 10_000,
          tokensPerDay: 500_000,
          concurrent: 2,
          maxOutputTokens: 400,
          perEndUser: { requestsPerMinute: 6, tokensPerMinute: 1_000, concurrent: 1 },
        },
        tier: 'gold',
        spendingLimit: { usd: 10, period: 'month' },
      }
      const { key, secret } = await keys.create(settings)

      expect(key).toMatchObject({ ...settings, name: settings.name.trim(), status: 'active' })
      expect(key.id).toMatch(/^key_\w+$/)
      const { name, ...grant } = settings
      expect(await keys.authenticate(secret)).toEqual({
        id: key.id,
        tenant: key.id,
        ...grant,
        key: { id: key.id, name: name.trim() },
      })
      expect(await keys.get(key.id)).toMatchObject(key)
    })

    test('a key has the tenant that was set, else its id', async () => {
      const { key, secret } = await keys.create({ name: 'one', tenant: 'team a' })
      const other = await keys.create({ name: 'two', tenant: 'team a' })

      expect([key.tenant, other.key.tenant]).toEqual(['team a', 'team a'])
      expect(await keys.authenticate(secret)).toMatchObject({ id: key.id, tenant: 'team a' })
      expect((await keys.update(key.id, { name: 'renamed' })).tenant).toBe('team a')
      expect((await keys.update(key.id, { tenant: 'team b' })).tenant).toBe('team b')
      expect((await keys.rotate(key.id)).key.tenant).toBe('team b')
      expect((await keys.update(key.id, { tenant: null })).tenant).toBe(key.id)
      expect(await keys.authenticate(secret)).toMatchObject({ tenant: key.id })
      expect((await keys.get(other.key.id)).tenant).toBe('team a')
    })

    test.each(['', ' ', 'two\nlines', 'nul \0', 'x'.repeat(101), 7])(
      'rejects the tenant %j',
      async (tenant) => {
        await expect(keys.create({ name: 'one', tenant: tenant as string })).rejects.toMatchObject({
          code: 'invalid_request',
          details: { param: 'tenant' },
        })
      },
    )

    test('a key without settings has the scope inference and never expires', async () => {
      const { key, secret } = await keys.create({ name: 'plain' })

      expect(key).toEqual({
        id: key.id,
        name: 'plain',
        tenant: key.id,
        hint: expect.stringContaining(secret.slice(-4)),
        status: 'active',
        scopes: ['inference'],
        createdAt: expect.any(Date),
      })
      aheadMs = 100 * 365 * 86_400_000
      expect(await keys.authenticate(secret)).toMatchObject({ id: key.id, scopes: ['inference'] })
    })

    test('the database does not contain the secret', async () => {
      const { secret } = await keys.create({ name: 'hidden' })
      await keys.authenticate(secret)

      const rows = [
        ...(await database.query('SELECT * FROM modelmount_keys')),
        ...(await database.query('SELECT * FROM modelmount_key_secrets')),
      ]
      expect(rows).toHaveLength(2)
      expect(JSON.stringify(rows)).not.toContain(secret.slice(-43))
    })

    test('rejects unknown, revoked and expired keys with the same text', async () => {
      const revoked = await keys.create({ name: 'revoked' })
      await keys.revoke(revoked.key.id)
      const expired = await keys.create({ name: 'expired', expiresIn: '10s' })
      const { secret } = await keys.create({ name: 'good' })
      const last = secret.at(-1) === 'A' ? 'B' : 'A'
      aheadMs = 10_000

      for (const wrong of [
        revoked.secret,
        expired.secret,
        secret.slice(0, -1) + last,
        secret.replace(/^sk-mm-[\da-f]{16}/, `sk-mm-${'0'.repeat(16)}`),
        'sk-ant-api03-of-somebody-else',
      ])
        await expect(keys.authenticate(wrong), wrong).rejects.toMatchObject(refused)
      expect(await keys.authenticate(secret)).toMatchObject({ key: { name: 'good' } })
    })

    test('rejects hostile strings like any other, and quickly', async () => {
      const start = performance.now()

      for (const text of ["'", '"', '\0', "sk-mm-' OR '1'='1", '\u{d800}', 'x'.repeat(2 ** 20), ''])
        await expect(keys.authenticate(text)).rejects.toMatchObject(refused)

      expect(performance.now() - start).toBeLessThan(500)
    })

    test('expires a key to the millisecond, also in the list', async () => {
      const { key, secret } = await keys.create({ name: 'short', expiresIn: 60_000 })

      expect(key.expiresAt?.getTime()).toBe(key.createdAt.getTime() + 60_000)
      aheadMs = 60_000
      await expect(keys.authenticate(secret)).rejects.toMatchObject(refused)
      expect(await keys.get(key.id)).toMatchObject({ status: 'expired' })
    })

    test.each([
      ['30d', 30 * 86_400_000],
      ['90m', 5_400_000],
      [0, 0],
    ] as const)('%j is a time to live', async (expiresIn, ms) => {
      const { key } = await keys.create({ name: 'timed', expiresIn })

      expect(key.expiresAt?.getTime()).toBe(key.createdAt.getTime() + ms)
    })

    test('accepts a timestamp as a Date and as a string', async () => {
      const at = new Date('2040-02-03T04:05:06.007Z')
      const asDate = await keys.create({ name: 'date', expiresAt: at })
      const asText = await keys.create({ name: 'text', expiresAt: at.toISOString() as unknown as Date })

      expect([asDate.key.expiresAt, asText.key.expiresAt]).toEqual([at, at])
    })

    test.each([
      [{}, 'name'],
      [{ name: '' }, 'name'],
      [{ name: 'two\nlines' }, 'name'],
      [{ name: 'NUL \0' }, 'name'],
      [{ name: 'x', scopes: [] }, 'scopes'],
      [{ name: 'x', scopes: ['root'] }, 'scopes[0]'],
      [{ name: 'x', models: [] }, 'models'],
      [{ name: 'x', limits: { requestsPerMinute: 0 } }, 'limits.requestsPerMinute'],
      [{ name: 'x', limits: { concurrent: 1.5 } }, 'limits.concurrent'],
      [{ name: 'x', limits: { tokensPerDay: 1e8 + 1 } }, 'limits.tokensPerDay'],
      [{ name: 'x', limits: { maxOutputTokens: 0 } }, 'limits.maxOutputTokens'],
      [{ name: 'x', limits: { perEndUser: { concurrent: '1' } } }, 'limits.perEndUser.concurrent'],
      [{ name: 'x', limits: { perEndUser: { tokensPerDay: 1 } } }, 'limits.perEndUser'],
      [{ name: 'x', spendingLimit: { usd: -1, period: 'day' } }, 'spendingLimit.usd'],
      [{ name: 'x', spendingLimit: { usd: 1, period: 'week' } }, 'spendingLimit.period'],
      [{ name: 'x', expiresIn: 'soon' }, 'expiresIn'],
      [{ name: 'x', expiresIn: '2040-01-02' }, 'expiresIn'],
      [{ name: 'x', expiresAt: '30d' }, 'expiresAt'],
      [{ name: 'x', expiresAt: 60_000 }, 'expiresAt'],
      [{ name: 'x', expiresIn: '1d', expiresAt: '2040-01-02' }, 'expiresAt'],
      [{ name: 'x', expires: '30d' }, ''],
      [{ name: 'x', spendLimit: { nanoUsd: 1, per: 'day' } }, ''],
      [{ name: 'x', expiresAt: new Date(Number.NaN) }, 'expiresAt'],
      [{ name: 'x', expiresIn: '-1h' }, 'expiresIn'],
      [{ name: 'x', expiresAt: '2027-02-30' }, 'expiresAt'],
    ])('rejects %j and names the invalid field', async (settings, param) => {
      await expect(keys.create(settings as KeySettings)).rejects.toMatchObject({
        code: 'invalid_request',
        details: { param },
      })
      expect(await keys.list()).toEqual([])
    })

    test('rejects a misspelt setting', async () => {
      const misspelt = { name: 'x', scope: ['admin'] } as KeySettings

      await expect(keys.create(misspelt)).rejects.toMatchObject({ code: 'invalid_request' })
    })

    test('changes apply at the next call, and other settings stay', async () => {
      const { key, secret } = await keys.create({
        name: 'before',
        tenant: 'team',
        models: ['tiny'],
        limits: { concurrent: 1 },
        expiresIn: '1h',
      })

      const changed = await keys.update(key.id, {
        name: 'after',
        limits: { requestsPerMinute: 5 },
        models: null,
        expiresAt: null,
      })

      expect(changed).toEqual({
        id: key.id,
        name: 'after',
        tenant: 'team',
        hint: key.hint,
        status: 'active',
        scopes: ['inference'],
        limits: { requestsPerMinute: 5 },
        createdAt: key.createdAt,
      })
      expect(await keys.authenticate(secret)).toEqual({
        id: key.id,
        tenant: 'team',
        scopes: ['inference'],
        limits: { requestsPerMinute: 5 },
        key: { id: key.id, name: 'after' },
      })
    })

    test('keeps all concurrent changes', async () => {
      const { key } = await keys.create({ name: 'busy' })

      await Promise.all([
        keys.update(key.id, { tier: 'gold' }),
        keys.update(key.id, { limits: { concurrent: 3 } }),
        keys.update(key.id, { models: ['tiny'] }),
      ])

      expect(await keys.get(key.id)).toMatchObject({
        tier: 'gold',
        limits: { concurrent: 3 },
        models: ['tiny'],
      })
    })

    test('a day means its beginning in UTC, and a grace period may have days', async () => {
      const { key } = await keys.create({ name: 'dated', expiresAt: '2040-01-02' })

      expect(key.expiresAt).toEqual(new Date('2040-01-02T00:00:00Z'))
      await keys.rotate(key.id, { grace: '7d' })
    })

    test.each(['abc', '-1s', Number.NaN, null, {}])('rejects a grace of %j', async (grace) => {
      const { key } = await keys.create({ name: 'rotated' })

      await expect(keys.rotate(key.id, { grace: grace as '1h' })).rejects.toMatchObject({
        code: 'invalid_request',
        details: { param: 'grace' },
      })
    })

    test('a rotated key has two valid secrets during the grace period', async () => {
      const { key, secret: first } = await keys.create({ name: 'rotated' })
      const { key: rotated, secret: second } = await keys.rotate(key.id, { grace: '1h' })

      expect(rotated).toMatchObject({ id: key.id, hint: expect.stringContaining(second.slice(-4)) })
      expect(await keys.get(key.id)).toEqual(rotated)
      expect(rotated.previousSecretExpiresAt?.getTime()).toBeGreaterThan(Date.now() + 3_500_000)
      for (const secret of [first, second])
        expect(await keys.authenticate(secret)).toMatchObject({ id: key.id })
      aheadMs = 3_600_000 + 1
      await expect(keys.authenticate(first)).rejects.toMatchObject(refused)
      expect(await keys.authenticate(second)).toMatchObject({ id: key.id })
      expect(await keys.get(key.id)).not.toHaveProperty('previousSecretExpiresAt')
    })

    test('previous secrets can expire before the grace period ends', async () => {
      const { key, secret: first } = await keys.create({ name: 'rotated' })
      const { secret: second } = await keys.rotate(key.id)
      const { secret: third } = await keys.rotate(key.id)

      const expired = await keys.expirePreviousSecrets(key.id)

      expect(expired).not.toHaveProperty('previousSecretExpiresAt')
      expect(await keys.get(key.id)).toMatchObject({ hint: expired.hint })
      for (const secret of [first, second])
        await expect(keys.authenticate(secret)).rejects.toMatchObject(refused)
      expect(await keys.authenticate(third)).toMatchObject({ id: key.id })
      await expect(keys.expirePreviousSecrets('key_none')).rejects.toMatchObject({ code: 'not_found' })
    })

    test('a longer grace does not extend an old secret', async () => {
      const { key, secret } = await keys.create({ name: 'twice' })
      await keys.rotate(key.id, { grace: '1s' })
      await keys.rotate(key.id, { grace: '1h' })

      aheadMs = 2_000
      await expect(keys.authenticate(secret)).rejects.toMatchObject(refused)
    })

    test('a grace of 0 ends the old secret at once', async () => {
      const { key, secret } = await keys.create({ name: 'leaked' })
      const { secret: next } = await keys.rotate(key.id, { grace: 0 })

      await expect(keys.authenticate(secret)).rejects.toMatchObject(refused)
      expect(await keys.authenticate(next)).toMatchObject({ id: key.id })
    })

    test('a revoked key cannot be changed, and can be revoked again', async () => {
      const { key } = await keys.create({ name: 'gone' })
      const first = await keys.revoke(key.id)
      aheadMs = 1_000

      expect(await keys.revoke(key.id)).toEqual(first)
      expect(first).toMatchObject({ status: 'revoked', revokedAt: expect.any(Date) })
      for (const change of [() => keys.update(key.id, { name: 'back' }), () => keys.rotate(key.id)])
        await expect(change()).rejects.toMatchObject({ code: 'conflict' })
    })

    test('rejects unknown ids with not_found, whatever they contain', async () => {
      for (const id of ['key_none', '', "' OR 1=1 --", '\0', 'x'.repeat(2 ** 20)])
        for (const attempt of [
          () => keys.get(id),
          () => keys.update(id, {}),
          () => keys.rotate(id),
          () => keys.revoke(id),
        ])
          await expect(attempt()).rejects.toMatchObject({ code: 'not_found' })
    })

    test('lists all keys, newest first', async () => {
      for (const name of ['first', 'second', 'third']) {
        await keys.create({ name })
        aheadMs += 10
      }

      expect((await keys.list()).map(({ name }) => name)).toEqual(['third', 'second', 'first'])
    })

    test('records the last use once a minute, in the background', async () => {
      const writes: string[] = []
      const watched: Database = {
        ...withClock(database),
        clock: database.clock,
        skipLocked: database.skipLocked,
        query: <Row extends object>(sql: string, parameters?: readonly SqlValue[]) => {
          if (sql.includes('SET last_used_at')) writes.push(sql)
          return database.query<Row>(sql, parameters)
        },
      }
      const watching = await openKeys(watched)
      const { key, secret } = await watching.create({ name: 'used' })
      expect(key.lastUsedAt).toBeUndefined()

      await watching.authenticate(secret)
      await watching.close()
      await Promise.all(Array.from({ length: 20 }, () => watching.authenticate(secret)))

      expect(writes).toHaveLength(1)
      expect((await watching.get(key.id)).lastUsedAt?.getTime()).toBeGreaterThanOrEqual(
        key.createdAt.getTime(),
      )
      aheadMs = 60_001
      const before = (await keys.get(key.id)).lastUsedAt
      await keys.authenticate(secret)
      await keys.close()
      expect((await keys.get(key.id)).lastUsedAt).not.toEqual(before)
    })

    test('a call succeeds even if its last use cannot be recorded', async () => {
      const { secret } = await keys.create({ name: 'on a full disk' })
      const failing = await openKeys({
        ...withClock(database),
        clock: database.clock,
        skipLocked: database.skipLocked,
        query: async (sql, parameters) => {
          if (sql.includes('SET last_used_at')) throw new Error('the disk is full')
          return database.query(sql, parameters)
        },
      })

      expect(await failing.authenticate(secret)).toMatchObject({ key: { name: 'on a full disk' } })
      await failing.close()
    })

    describe('limit requests', () => {
      test('an approved request adds its limits to those of the key', async () => {
        const { key, secret } = await keys.create({
          name: 'eager',
          tier: 'gold',
          limits: {
            concurrent: 1,
            requestsPerMinute: 2,
            maxOutputTokens: 100,
            perEndUser: { concurrent: 1 },
          },
        })
        const caller = await keys.authenticate(secret)

        const request = await keys.requests.create(caller, {
          limits: { requestsPerMinute: 100, maxOutputTokens: 2_000, perEndUser: { concurrent: 2 } },
          reason: 'We have grown.',
        })
        expect(request).toMatchObject({ keyId: key.id, status: 'pending', reason: 'We have grown.' })
        expect(await keys.requests.list({ status: 'pending' })).toEqual([request])
        const approved = await keys.requests.approve(request.id)

        expect(approved).toMatchObject({ ...request, status: 'approved', decidedAt: expect.any(Date) })
        expect(await keys.authenticate(secret)).toMatchObject({
          tier: 'gold',
          limits: {
            concurrent: 1,
            requestsPerMinute: 100,
            maxOutputTokens: 2_000,
            perEndUser: { concurrent: 2 },
          },
        })
        expect(await keys.requests.list({ status: 'pending' })).toEqual([])
      })

      test('a refused request changes nothing, and the key may request again', async () => {
        const { secret } = await keys.create({ name: 'eager', limits: { concurrent: 1 } })
        const caller = await keys.authenticate(secret)
        const ask = () => keys.requests.create(caller, { limits: { concurrent: 9 } })

        const first = await ask()
        await expect(ask()).rejects.toMatchObject({ code: 'conflict' })
        await keys.requests.refuse(first.id)

        expect(await keys.authenticate(secret)).toEqual(caller)
        expect(await ask()).toMatchObject({ status: 'pending' })
        expect(await keys.requests.list()).toHaveLength(2)
      })

      test('a request is decided once', async () => {
        const { secret } = await keys.create({ name: 'eager', limits: { concurrent: 1 } })
        const { id } = await keys.requests.create(await keys.authenticate(secret), {
          limits: { concurrent: 9 },
        })

        const answers = await Promise.allSettled([keys.requests.approve(id), keys.requests.refuse(id)])

        expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
        await expect(keys.requests.refuse(id)).rejects.toMatchObject({ code: 'conflict' })
        await expect(keys.requests.approve('limreq_none')).rejects.toMatchObject({ code: 'not_found' })
      })

      test('a request of a revoked key cannot be approved and stays pending', async () => {
        const { key, secret } = await keys.create({ name: 'eager', limits: { concurrent: 1 } })
        const { id } = await keys.requests.create(await keys.authenticate(secret), {
          limits: { concurrent: 9 },
        })
        await keys.revoke(key.id)

        await expect(keys.requests.approve(id)).rejects.toMatchObject({ code: 'conflict' })
        expect(await keys.requests.list({ status: 'pending' })).toHaveLength(1)
      })

      test('a request requires a limit and a key', async () => {
        const { secret } = await keys.create({ name: 'eager', limits: { concurrent: 1 } })
        const caller = await keys.authenticate(secret)

        await expect(keys.requests.create(caller, { limits: {} })).rejects.toMatchObject({
          code: 'invalid_request',
        })
        await expect(keys.requests.create({}, { limits: { concurrent: 1 } })).rejects.toMatchObject({
          code: 'permission',
        })
      })
    })

    const describeIfShared = name === 'SQLite in memory' ? () => {} : describe
    describeIfShared('in another process', () => {
      const inAnotherProcess = async (code: string): Promise<string> => {
        const module = (path: string) =>
          JSON.stringify(new URL(`../../../dist/${path}`, import.meta.url).href)
        const script = `
          const { openDatabase } = await import(${module('storage/open.js')})
          const { openKeys } = await import(${module('accounts/keys/keys.js')})
          const database = await openDatabase(${JSON.stringify(location)})
          const keys = await openKeys(database)
          ${code}
          await keys.close()
          await database.close()`
        const { stdout } = await promisify(execFile)(
          process.execPath,
          ['--input-type=module', '--eval', script],
          { timeout: 20_000 },
        )
        return stdout
      }

      test('a key revoked there is rejected here at the next call', async () => {
        const { key, secret } = await keys.create({ name: 'shared' })
        expect(await keys.authenticate(secret)).toMatchObject({ id: key.id })

        await inAnotherProcess(`await keys.revoke(${JSON.stringify(key.id)})`)

        await expect(keys.authenticate(secret)).rejects.toMatchObject(refused)
      })

      test('a key created there is accepted here', async () => {
        const secret = await inAnotherProcess(
          "process.stdout.write((await keys.create({ name: 'made there' })).secret)",
        )

        expect(await keys.authenticate(secret)).toMatchObject({ key: { name: 'made there' } })
      })
    })
  },
)

test('without a database, each method names the option that is missing', async () => {
  const keys = await openKeys(undefined)

  for (const attempt of [
    () => keys.create({ name: 'x' }),
    () => keys.list(),
    () => keys.revoke('x'),
    () => keys.requests.list(),
  ]) {
    await expect(attempt()).rejects.toThrow(TypeError)
    await expect(attempt()).rejects.toThrow('Expected the option `database` of createLlm()')
  }
})
