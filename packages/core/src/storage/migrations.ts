/** Creates and changes tables in numbered steps, which run once per database. */
import { createHash } from 'node:crypto'
import type { Database, Queries } from './database.ts'

/** The SQL statements of one step. A released step never changes. A later change is another step. */
export type Migration = readonly string[]

/** A step that a database has applied. */
export interface AppliedStep {
  readonly owner: string
  readonly number: number
  readonly checksum: string
}

/** A newer version of Modelmount has changed the tables, so this version must not use them. */
export class NewerSchemaError extends Error {
  override readonly name = 'NewerSchemaError'

  constructor(owner: string, version: number, supported: number) {
    super(
      `The database is too new: its ${owner} tables have schema version ${version}, and this version of ` +
        `Modelmount supports versions up to ${supported}. Start the version of Modelmount that upgraded the ` +
        'database, or a newer one, or restore a backup from before the upgrade.',
    )
  }
}

/**
 * Runs the missing steps, each in a transaction. Several processes can migrate at once. Throws a
 * `NewerSchemaError` before the first change if a newer version has applied further steps. Throws if an applied
 * step has changed.
 *
 * @param owner name of a group of tables, whose steps are numbered from 1
 */
export async function migrate(
  database: Database,
  owner: string,
  migrations: readonly Migration[],
): Promise<void> {
  const steps = await database.transaction(
    async (queries) => {
      await queries.query(createMigrationsTable)
      return readAppliedSteps(queries)
    },
    { exclusive: true },
  )
  const version = versionOf(steps, owner)
  if (version > migrations.length) throw new NewerSchemaError(owner, version, migrations.length)
  const appliedChecksums = new Map(
    steps.filter((step) => step.owner === owner).map((step) => [step.number, step.checksum]),
  )
  for (const [index, statements] of migrations.entries()) {
    const number = index + 1
    const checksum = checksumOf(statements)
    // An up-to-date database needs no transaction for each step.
    if (appliedChecksums.get(number) === checksum) continue
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

/** Reads the steps of all owners. Rejects if `migrate` has never run. */
export const readAppliedSteps = (queries: Queries): Promise<readonly AppliedStep[]> =>
  queries.query<AppliedStep>(
    'SELECT owner, number, checksum FROM modelmount_migrations ORDER BY owner, number',
  )

/** Number of the last applied step of an owner, or 0. */
export const versionOf = (steps: readonly AppliedStep[], owner: string): number =>
  Math.max(0, ...steps.filter((step) => step.owner === owner).map(({ number }) => number))

export const checksumOf = (statements: Migration): string =>
  createHash('sha256').update(statements.join(';\n')).digest('hex')

const createMigrationsTable = `CREATE TABLE IF NOT EXISTS modelmount_migrations (
  owner TEXT NOT NULL,
  number INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  taken_at BIGINT NOT NULL,
  PRIMARY KEY (owner, number)
)`
