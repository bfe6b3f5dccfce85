/** Databases of every earlier schema are upgraded. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm, LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, test } from 'vitest'
import { schema } from '../../packages/core/src/database/tables.ts'
import type { Database } from '../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { secrets } from './fixtures/schemas/rows.mjs'

const folder = fileURLToPath(new URL('fixtures/schemas', import.meta.url))
const dumps = readdirSync(folder).filter((name) => name.endsWith('.sql'))
/** The number of the last step of an owner, which is in the name of the dump. */
const versionIn = (dump: string, owner: string): number =>
  Number(new RegExp(`\\b${owner}-(\\d+)`).exec(dump)?.[1] ?? 0)
/** This dump is of a start that was interrupted after its first step, so it has no rows. */
const interrupted = 'keys-1.sql'

const models = emptyFolder()
const open = (database: string): Promise<Llm> =>
  createLlm({
    ...{ auth: 'keys', models, database, engine: scriptedEngine('word') },
    prices: { 'scripted-small': { inputPerMillionUsd: 1000, outputPerMillionUsd: 2000 } },
    usage: { retentionDays: 'forever' },
  })

async function withDatabase<Result>(
  location: string,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(location)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** Each `;` at the end of a line ends a statement, because no text contains a line break. */
const load = (location: string, dump: string): Promise<void> =>
  withDatabase(location, async (database) => {
    const statements = readFileSync(`${folder}/${dump}`, 'utf8').split(';\n').filter(Boolean)
    for (const statement of statements) await database.query(statement)
  })

/** Tables, columns and indexes. */
const structureOf = (location: string, isSqlite: boolean): Promise<readonly object[]> =>
  withDatabase(location, (database) =>
    database.query(
      isSqlite
        ? `SELECT m.name AS name, p.name AS part, upper(p.type) AS type, p."notnull" AS required FROM sqlite_master m
           JOIN pragma_table_info(m.name) p UNION ALL SELECT m.name, i.name, 'INDEX', i."unique" FROM sqlite_master m
           JOIN pragma_index_list(m.name) i ORDER BY 1, 2`
        : `SELECT table_name AS name, column_name AS part, data_type AS type, is_nullable AS required
           FROM information_schema.columns WHERE table_schema = 'public'
           UNION ALL SELECT tablename, indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2`,
    ),
  )

const stepsOf = (location: string): Promise<readonly object[]> =>
  withDatabase(location, (database) =>
    database.query('SELECT owner, number, checksum FROM modelmount_migrations ORDER BY owner, number'),
  )

async function ask(llm: Llm, secret: string): Promise<string> {
  try {
    const caller = await llm.keys.authenticate(secret)
    const input = {
      kind: 'chat',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'say 1' }] }],
    } as const
    const { signal } = new AbortController()
    for await (const _ of await llm.generate(
      { model: 'scripted-small', maxTokens: 1, input },
      { signal, caller },
    ));
    return 'admitted'
  } catch (cause) {
    return LlmError.from(cause).code
  }
}
/** Cost of `ask`: one input token and one output token. */
const callNanoUsd = 3_000_000n

describe.each(databases())('in $name', ({ name, fresh }) => {
  const isSqlite = name === 'SQLite'

  test.each(dumps)('upgrades %s to the tables of a new database', async (dump) => {
    const [old, created] = [await fresh(), await fresh()]
    await load(old, dump)

    for (const location of [old, created]) await (await open(location)).close()

    expect(await structureOf(old, isSqlite)).toEqual(await structureOf(created, isSqlite))
    expect(await stepsOf(old)).toEqual(await stepsOf(created))
  })

  test.each(dumps.filter((dump) => dump !== interrupted))('keeps the rows of %s', async (dump) => {
    const location = await fresh()
    await load(location, dump)
    const llm = await open(location)

    expect((await llm.keys.list()).map(({ id, status, tenant }) => [id, status, tenant])).toEqual([
      ['key_asks', 'active', 'key_asks'],
      ['key_debtor', 'active', 'key_debtor'],
      ['key_revoked', 'revoked', 'key_revoked'],
      ['key_rotated', 'active', versionIn(dump, 'keys') >= 3 ? 'team' : 'key_rotated'],
      ['key_spent', 'active', 'key_spent'],
      ['key_working', 'active', 'key_working'],
    ])
    expect((await llm.keys.get('key_working')).spendingLimit).toEqual({ usd: 0.9, period: 'lifetime' })
    const outcomes = Object.entries(secrets).map(async ([label, secret]) => [label, await ask(llm, secret)])
    expect(Object.fromEntries(await Promise.all(outcomes))).toEqual({
      working: 'admitted',
      revoked: 'authentication',
      rotated: 'admitted',
      rotatedInGrace: 'admitted',
      spent: 'quota',
      debtor: 'rate_limit',
      asks: 'admitted',
    })
    await llm.keys.requests.approve('limreq_pending')
    expect((await llm.keys.get('key_asks')).limits).toEqual({ requestsPerMinute: 100 })
    const sums = (await llm.usage.report({ by: 'key' })).map(({ group, calls, nanoUsd }) => [
      group,
      calls,
      nanoUsd,
    ])
    expect(sums).toEqual(
      expect.arrayContaining([
        ['key_working', 3, 16_000_000n + callNanoUsd],
        ['key_rotated', 3, 5_000_000n + 2n * callNanoUsd],
        ['key_spent', 1, 17_000_000n],
      ]),
    )
    const calls = await llm.usage.calls({ caller: 'key_working' })
    expect(calls.find(({ id }) => id === 'call_1')).toMatchObject({
      keyName: "Ada's laptop 🦊",
      tokens: { output: 3 },
      undeliveredTokens: versionIn(dump, 'usage') >= 3 ? 2 : 0,
    })
    const { batches } = await llm.batches.list()
    expect(batches.map(({ id, owner, models }) => [id, owner?.caller, models])).toEqual(
      versionIn(dump, 'batches') >= 1 ? [['msgbatch_1', 'key_rotated', undefined]] : [],
    )
    await llm.close()
  })
})

test.each(Object.entries(schema))('a dump has each earlier version of the %s tables', (owner, { length }) => {
  for (let version = 1; version < length; version++)
    expect(dumps.map((dump) => versionIn(dump, owner))).toContain(version)
})
