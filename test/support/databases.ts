/**
 * The databases on which the same tests run: SQLite, and PostgreSQL where it is installed. `databases()` must
 * be called at the top of a test file, because it registers hooks that start and stop PostgreSQL.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { emptyFolder } from './empty-folder.ts'
import { hasPostgres, type RunningPostgres, startPostgres } from './postgres.ts'

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
  let running: RunningPostgres
  beforeAll(async () => {
    running = await startPostgres()
  })
  afterAll(() => running.stop())
  return {
    name: 'PostgreSQL',
    fresh: async () => {
      const name = `test_${randomUUID().replaceAll('-', '')}`
      const { default: pg } = await import('pg')
      const client = new pg.Client({ connectionString: running.url })
      await client.connect()
      await client.query(`CREATE DATABASE ${name}`)
      await client.end()
      return running.url.replace(/postgres$/, name)
    },
  }
}
