/** Creates and changes tables in numbered steps, which run once per database. */
import { createHash } from 'node:crypto'
import type { Database } from './database.ts'

/** The SQL statements of one step. A released step never changes. A later change is another step. */
export type Migration = readonly string[]

/**
 * Runs the missing steps, each in a transaction. Several processes can migrate at once. Ignores steps that a
 * newer version has applied. Throws if an applied step has changed.
 *
 * @param owner name of a group of tables, whose steps are numbered from 1
 */
export async function migrate(
  database: Database,
  owner: string,
  migrations: readonly Migration[],
): Promise<void> {
  await database.transaction(async ({ query }) => void (await query(createMigrationsTable)), {
    exclusive: true,
  })
  for (const [index, statements] of migrations.entries()) {
    const number = index + 1
    const checksum = createHash('sha256').update(statements.join(';\n')).digest('hex')
    await database.transaction(
      async ({ query }) => {
        const [applied] = await query<{ checksum: string }>(
          'SELECT checksum FROM modelmount_migrations WHERE owner = ? AND number = ?',
          [owner, number],
        )
        if (applied?.checksum === checksum) return
        if (applied)
          throw new Error(`Migration ${number} of ${owner} differs from the one applied to this database.`)
        for (const statement of statements) await query(statement)
        await query(
          `INSERT INTO modelmount_migrations (owner, number, checksum, taken_at) VALUES (?, ?, ?, ${database.clock})`,
          [owner, number, checksum],
        )
      },
      { exclusive: true },
    )
  }
}

const createMigrationsTable = `CREATE TABLE IF NOT EXISTS modelmount_migrations (
  owner TEXT NOT NULL,
  number INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  taken_at BIGINT NOT NULL,
  PRIMARY KEY (owner, number)
)`
