/** Current code must open databases that older code wrote. `fixtures/README.md` describes the databases. */
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ApiKey, createLlm, type Llm, LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { hasPostgres, type RunningPostgres, startPostgres } from '../support/postgres.ts'

interface Period {
  readonly day: string
  readonly month: string
  readonly lifetime: string
}

interface Expected extends Record<'dayStartMs' | 'monthStartMs', number> {
  readonly list: readonly string[]
  readonly keys: Readonly<
    Record<
      string,
      {
        readonly secrets: { readonly current: string }
        readonly key: Omit<ApiKey, 'spendingLimit'> & {
          readonly spendLimit?: { readonly nanoUsd: number; readonly per: keyof Period }
        }
        readonly money: { readonly spentNanoUsd: Period; readonly remainingNanoUsd?: string }
        readonly requests: readonly { readonly id: string; readonly status: string }[]
      }
    >
  >
  readonly tried: {
    readonly aMinuteLater: {
      readonly keys: Readonly<Record<string, { readonly call: string }>>
    }
  }
}

const fixture = (path: string): string => fileURLToPath(new URL(`fixtures/${path}`, import.meta.url))
const { options, ...expected } = JSON.parse(readFileSync(fixture('expected.json'), 'utf8')) as {
  readonly options: {
    readonly prices: object
    readonly tiers: object
    readonly limits: { readonly models: object }
  }
  readonly sqlite: Expected
  readonly postgres: Expected
}

const call = {
  model: 'scripted-small',
  maxTokens: 1,
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'say 1' }] }] },
} as const
/** Cost of `call`: one input token and one output token. */
const callNanoUsd = 3_000_000n

let server: RunningPostgres | undefined
let databaseCount = 0
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres()
})
afterAll(async () => server?.stop())

async function copySqlite(): Promise<string> {
  const path = join(emptyFolder(), 'copy.db')
  copyFileSync(fixture('sqlite/modelmount-before.db'), path)
  return path
}

async function loadPostgres(): Promise<string> {
  const name = `before_${++databaseCount}`
  await query(server?.url as string, `CREATE DATABASE ${name}`)
  const url = String(server?.url).replace(/\/postgres$/, `/${name}`)
  await query(url, readFileSync(fixture('postgres/modelmount-before.sql'), 'utf8'))
  return url
}

async function query(connectionString: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

describe.each([
  { name: 'sqlite' as const, copy: copySqlite, isHere: true },
  { name: 'postgres' as const, copy: loadPostgres, isHere: hasPostgres },
])('a $name database of an older version', ({ name, copy, isHere }) => {
  const before = expected[name]
  const labels = Object.keys(before.keys)
  const keyOf = (label: string) => before.keys[label] as Expected['keys'][string]

  async function open(location: string): Promise<Llm> {
    return createLlm({
      auth: 'keys',
      models: emptyFolder(),
      database: location,
      engine: scriptedEngine('word'),
      prices: options.prices as never,
      tiers: options.tiers as never,
      modelLimits: options.limits.models as never,
      usage: { retentionDays: 'forever' },
    })
  }

  async function withLlm(work: (llm: Llm, database: Database) => Promise<void>): Promise<void> {
    const location = await copy()
    const database = await openDatabase(location)
    await moveToNow(database, before)
    const llm = await open(location)
    try {
      await work(llm, database)
    } finally {
      await llm.close()
      await database.close()
    }
  }

  const expectedLimit = (label: string) => {
    const { spendLimit } = keyOf(label).key
    return spendLimit && { nanoUsd: spendLimit.nanoUsd, period: spendLimit.per }
  }

  const ask = async (llm: Llm, label: string): Promise<string> => {
    try {
      const caller = await llm.keys.authenticate(keyOf(label).secrets.current)
      const { signal } = new AbortController()
      for await (const _ of await llm.generate(call, { signal, caller }));
      return 'admitted'
    } catch (cause) {
      return LlmError.from(cause).code
    }
  }

  test.runIf(isHere)('opens with the same settings and spending limit for each key', async () => {
    await withLlm(async ({ keys }) => {
      const list = await keys.list()

      expect(list.map(({ id }) => labels.find((label) => keyOf(label).key.id === id))).toEqual(before.list)
      for (const label of labels) {
        const { spendLimit: _, ...settings } = keyOf(label).key
        const { spendingLimit, tenant, previousSecretExpiresAt, ...now } = await keys.get(settings.id)
        expect(previousSecretExpiresAt !== undefined, label).toBe(label === 'rotated')
        expect(tenant, label).toBe(settings.id)
        expect(JSON.parse(JSON.stringify(now)), label).toEqual(settings)
        expect(spendingLimit && nanoUsdOf(spendingLimit), label).toEqual(expectedLimit(label))
      }
      expect((await keys.get(keyOf('zero').key.id)).spendingLimit).toEqual({ usd: 0, period: 'lifetime' })
      expect((await keys.get(keyOf('odd').key.id)).spendingLimit).toEqual({ usd: 0.100000001, period: 'day' })
    })
  })

  test.runIf(isHere)('admits and rejects the same calls, and adds new costs to past spending', async () => {
    await withLlm(async (llm, database) => {
      const outcomes: Record<string, string> = {}
      // The reservations of the killed process are older than a minute, so they have expired.
      for (const label of labels) outcomes[label] = await ask(llm, label)

      const { keys } = before.tried.aMinuteLater
      expect(outcomes).toEqual(Object.fromEntries(labels.map((label) => [label, keys[label]?.call])))
      for (const label of ['lifetime', 'day', 'month', 'largest', 'otherPeriod']) {
        const { key, money } = keyOf(label)
        const spent = BigInt(money.spentNanoUsd.lifetime) + callNanoUsd
        expect(await spentBy(database, key.id), label).toEqual({ day: spent, month: spent, lifetime: spent })
      }
    })
  })

  test.runIf(isHere)(
    'keeps a spending limit when another setting changes, and stores it under its new name',
    async () => {
      await withLlm(async ({ keys }, database) => {
        for (const label of labels) {
          const { key } = keyOf(label)
          if (key.status === 'revoked') continue
          const { spendingLimit } = await keys.update(key.id, { name: 'Renamed' })
          expect(spendingLimit && nanoUsdOf(spendingLimit), label).toEqual(expectedLimit(label))
          const granted = await grantedTo(database, key.id)
          expect(granted, label).not.toHaveProperty('spendLimit')
          expect(granted.spendingLimit, label).toEqual(expectedLimit(label))
        }
      })
    },
  )

  test.runIf(isHere)('removes a spending limit only by null, and never restores the old one', async () => {
    await withLlm(async (llm, database) => {
      const { key } = keyOf('lifetimeAllSpent')
      expect(await ask(llm, 'lifetimeAllSpent')).toBe('quota')

      expect(await llm.keys.update(key.id, { spendingLimit: null })).not.toHaveProperty('spendingLimit')
      expect(Object.keys(await grantedTo(database, key.id))).toEqual(['scopes'])
      expect(await ask(llm, 'lifetimeAllSpent')).toBe('admitted')
      await llm.keys.update(key.id, { spendingLimit: { usd: '0.021', period: 'lifetime' } })
      expect(await ask(llm, 'lifetimeAllSpent')).toBe('quota')
    })
  })

  test.runIf(isHere)(
    'reports usage from before the column `tenant` with the caller as its tenant',
    async () => {
      await withLlm(async (llm) => {
        const sumsBy = async (by: 'key' | 'tenant') =>
          (await llm.usage.report({ by })).map(({ group, nanoUsd }) => [group, nanoUsd])
        expect(await sumsBy('tenant')).toEqual(await sumsBy('key'))

        const { key } = keyOf('unlimited')
        await llm.keys.update(key.id, { tenant: 'team' })
        expect(await ask(llm, 'unlimited')).toBe('admitted')

        const [last, ...others] = await llm.usage.calls({ caller: key.id })
        expect(last?.tenant).toBe('team')
        expect(others.length).toBeGreaterThan(0)
        expect(new Set(others.map(({ tenant }) => tenant))).toEqual(new Set([key.id]))
        expect((await llm.usage.report({ by: 'tenant' })).map(({ group }) => group)).toContain('team')
      })
    },
  )

  test.runIf(isHere)('keeps the spending limit of a key whose limit request is approved', async () => {
    await withLlm(async ({ keys }) => {
      const { key, requests } = keyOf('asks')
      const pending = requests.find(({ status }) => status === 'pending')

      await keys.requests.approve(pending?.id as string)

      expect((await keys.get(key.id)).spendingLimit).toEqual({ usd: 0.05, period: 'month' })
    })
  })
})

/** Moves the spending of the fixture's day and month to today and this month. */
async function moveToNow(database: Database, { dayStartMs, monthStartMs }: Expected): Promise<void> {
  const [row] = await database.query<{ now: number }>(`SELECT ${database.clock} AS now`)
  const now = new Date(row?.now as number).toISOString()
  const [day, month] = [now.slice(0, 10), now.slice(0, 7)]
  await database.query(
    `UPDATE modelmount_spending SET day = ?, month = ?,
       exhausted = CASE exhausted WHEN ? THEN ? WHEN ? THEN ? ELSE exhausted END WHERE day <> ''`,
    [day, month, dayStartMs, Date.parse(day), monthStartMs, Date.parse(month)],
  )
}

const nanoUsdOf = ({ usd, period }: NonNullable<ApiKey['spendingLimit']>) => ({
  nanoUsd: typeof usd === 'string' ? Number(usd.replace('.', '')) : Math.round(usd * 1e9),
  period,
})

async function spentBy(database: Database, caller: string) {
  const [row] = await database.query<Record<'day' | 'month' | 'lifetime', number | bigint>>(
    'SELECT day_spent AS day, month_spent AS month, lifetime_spent AS lifetime FROM modelmount_spending WHERE caller = ?',
    [caller],
  )
  return Object.fromEntries(Object.entries(row ?? {}).map(([period, spent]) => [period, BigInt(spent)]))
}

async function grantedTo(database: Database, id: string): Promise<Record<string, unknown>> {
  const [row] = await database.query<{ granted: string }>(
    'SELECT granted FROM modelmount_keys WHERE id = ?',
    [id],
  )
  return JSON.parse(row?.granted as string)
}
