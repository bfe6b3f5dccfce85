/**
 * The databases on which the same tests run: SQLite, and PostgreSQL where it is installed. `databases()` must
 * be called at the top of a test file, because it registers hooks that delete the databases.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Client } from 'pg'
import { afterAll, inject } from 'vitest'
import { emptyFolder } from './empty-folder.ts'
import { expectNoLeaks } from './leaks.ts'
import { hasPostgres } from './postgres.ts'

export interface TestDatabase {
  readonly name: string
  /** Creates an empty database and returns its location. */
  fresh(): Promise<string>
}

export function databases(): readonly TestDatabase[] {
  const folder = emptyFolder()
  const sqlite = { name: 'SQLite', fresh: async () => join(folder, `${randomUUID()}.db`) }
  return hasPostgres ? [sqlite, postgres()] : [sqlite]
}

function postgres(): TestDatabase {
  const names: string[] = []
  afterAll(async () => {
    if (names.length === 0) return
    await withClient(async (client) => {
      try {
        await expectNoLeaksIn(client, names)
      } finally {
        for (const name of names) await client.query(`DROP DATABASE ${name} WITH (FORCE)`)
      }
    })
  })
  return {
    name: 'PostgreSQL',
    fresh: () =>
      withClient(async (client, url) => {
        const name = `test_${randomUUID().replaceAll('-', '')}`
        await client.query(`CREATE DATABASE ${name}`)
        names.push(name)
        return url.replace(/postgres$/, name)
      }),
  }
}

async function withClient<Result>(work: (client: Client, url: string) => Promise<Result>): Promise<Result> {
  const response = await fetch(inject('sharedPostgres'))
  const url = await response.text()
  if (!response.ok) throw new Error(url)
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client, url)
  } finally {
    await client.end()
  }
}

/** Searches the files of the databases' own tables. Files of PostgreSQL's tables have numbers below 16,384. */
export async function expectNoLeaksIn(client: Client, names: readonly string[]): Promise<void> {
  await client.query('CHECKPOINT')
  const { rows } = await client.query<{ folder: string }>(
    `SELECT current_setting('data_directory') || '/base/' || oid AS folder FROM pg_database
     WHERE datname = ANY($1)`,
    [names],
  )
  for (const { folder } of rows) expectNoLeaks(folder, (file) => Number.parseInt(file, 10) >= 16_384)
}
