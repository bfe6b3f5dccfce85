/** Checks a database without changing its rows, also a damaged one or one of another version. */
import { type Database, reasonOf } from '../storage/database.ts'
import {
  type AppliedStep,
  checksumOf,
  NewerSchemaError,
  readAppliedSteps,
  versionOf,
} from '../storage/migrations.ts'
import { type DatabaseLocation, isPostgres, openDatabase } from '../storage/open.ts'
import { expectExisting } from './expect-existing.ts'
import { type Contents, contentsAfter, optionalOwners, type Reference, schema } from './tables.ts'

/** What is known about a database: its schema, leases and problems. */
export interface DatabaseCheck {
  /** Which database it is. */
  readonly kind: 'sqlite' | 'postgres'
  /** Without the tables of fleets if no app has opened them. */
  readonly schema: readonly SchemaState[]
  /**
   * Rows that mark running work. A running app renews its own. Expired rows are of processes that were killed,
   * and do not count any more.
   */
  readonly leases: { readonly live: number; readonly expired: number }
  /** Sentences for people. Empty for a sound database that this version can use. */
  readonly problems: readonly string[]
}

/** The version of one group of tables. */
export interface SchemaState {
  /** Name of the group, such as `keys`. */
  readonly owner: string
  /** Version in the database. 0 if it has no such tables. */
  readonly version: number
  /** Newest version that this code supports. It upgrades older ones when an app starts. */
  readonly supported: number
}

/** Options of `checkDatabase()`. */
export interface CheckOptions {
  /** Whether to read the whole file of SQLite, which takes long for a large one. @default true */
  readonly integrity?: boolean | undefined
}

/**
 * Checks the integrity of the file (SQLite only, since PostgreSQL has its own tools), the schema versions, missing
 * tables and indexes, rows that refer to missing rows, and leases. Rejects with an `Error` if the database
 * does not exist or cannot be reached.
 *
 * @param location the option `database` of `createLlm()`
 */
export async function checkDatabase(
  location: DatabaseLocation,
  { integrity = true }: CheckOptions = {},
): Promise<DatabaseCheck> {
  if (!isPostgres(location)) expectExisting(location)
  const kind = isPostgres(location) ? 'postgres' : 'sqlite'
  const check = { kind, schema: [], leases: { live: 0, expired: 0 }, problems: [] } as const
  let database: Database | undefined
  let damage: readonly string[] = []
  try {
    database = await openDatabase(location)
    if (kind === 'sqlite' && integrity) damage = await findDamage(database)
    return { kind, ...(await checkTables(database, kind, damage)) }
  } catch (error) {
    const cause = reasonOf(error)
    if (kind === 'sqlite' && isDamage(cause))
      return { ...check, problems: [...damage, `The file is damaged: ${cause.message}.`] }
    throw cause
  } finally {
    await database?.close()
  }
}

async function findDamage(database: Database): Promise<readonly string[]> {
  const rows = await database.query<{ integrity_check: string }>(`PRAGMA integrity_check(${maxDamages})`)
  return rows
    .map(({ integrity_check: line }) => line)
    .filter((line) => line !== 'ok')
    .map((line) => `The file is damaged: ${line}.`)
}

/** How many damages are listed. */
const maxDamages = 20

const isDamage = (cause: unknown): cause is Error =>
  cause instanceof Error && /malformed|not a database|disk I\/O error/.test(cause.message)

async function checkTables(
  database: Database,
  kind: DatabaseCheck['kind'],
  damage: readonly string[],
): Promise<Omit<DatabaseCheck, 'kind'>> {
  const names = await readNames(database, kind)
  const steps = names.has('modelmount_migrations') ? await readAppliedSteps(database) : []
  const owners = new Set([...Object.keys(schema), ...steps.map(({ owner }) => owner)])
  const states = Array.from(owners, (owner): SchemaState => {
    const supported = schema[owner]?.length ?? 0
    return { owner, version: versionOf(steps, owner), supported }
  }).filter(({ owner, version }) => version > 0 || !optionalOwners.has(owner))
  const contents = states.map(({ owner, version }) => contentsAfter((schema[owner] ?? []).slice(0, version)))
  return {
    schema: states,
    leases: await countLeases(database, names),
    problems: [
      ...damage,
      ...findSchemaProblems(states, steps),
      ...contents.flatMap((expected) => findMissing(expected, names)),
      ...(await findForeignRows(database, contents, names)),
      ...(kind === 'postgres' ? await findInvalidIndexes(database) : []),
    ],
  }
}

/** Names of all tables and indexes. */
async function readNames(database: Database, kind: DatabaseCheck['kind']): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ name: string }>(
    kind === 'sqlite'
      ? 'SELECT name FROM sqlite_master'
      : 'SELECT relname AS name FROM pg_class WHERE pg_table_is_visible(oid)',
  )
  return new Set(rows.map(({ name }) => name))
}

function findSchemaProblems(
  states: readonly SchemaState[],
  steps: readonly AppliedStep[],
): readonly string[] {
  if (steps.length === 0) return ['The database contains no tables of Modelmount.']
  const newer = states.filter(({ version, supported }) => version > supported)
  const changed = steps.filter(({ owner, number, checksum }) => {
    const known = schema[owner]?.[number - 1]
    return known !== undefined && checksumOf(known) !== checksum
  })
  return [
    ...newer.map(({ owner, version, supported }) => new NewerSchemaError(owner, version, supported).message),
    ...changed.map(
      ({ owner, number }) =>
        `Version ${number} of the ${owner} tables differs from that of this version of Modelmount.`,
    ),
  ]
}

function findMissing({ tables, indexes }: Contents, names: ReadonlySet<string>): readonly string[] {
  const missing = (kind: string, expected: ReadonlySet<string>) =>
    [...expected].filter((name) => !names.has(name)).map((name) => `The ${kind} ${name} is missing.`)
  return [...missing('table', tables), ...missing('index', indexes)]
}

/** Rows whose parent is missing. Databases reject such rows, unless a tool has turned the check off. */
async function findForeignRows(
  database: Database,
  contents: readonly Contents[],
  names: ReadonlySet<string>,
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const reference of contents.flatMap(({ references }) => references)) {
    const { table, column, parent, parentColumn } = reference
    if (!names.has(table) || !names.has(parent)) continue
    const count = await countForeignRows(database, reference)
    if (count > 0)
      problems.push(
        `${count} rows of ${table} refer to missing rows of ${parent} (${column} to ${parentColumn}).`,
      )
  }
  return problems
}

async function countForeignRows(
  database: Database,
  { table, column, parent, parentColumn }: Reference,
): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    `SELECT count(*) AS count FROM ${table} WHERE ${column} IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM ${parent} WHERE ${parent}.${parentColumn} = ${table}.${column})`,
  )
  return row?.count ?? 0
}

const leaseTables = ['modelmount_funds', 'modelmount_limit_leases'] as const

async function countLeases(database: Database, names: ReadonlySet<string>): Promise<DatabaseCheck['leases']> {
  let [live, expired] = [0, 0]
  for (const table of leaseTables.filter((name) => names.has(name))) {
    const [row] = await database.query<{ live: number | null; total: number }>(
      `SELECT sum(CASE WHEN expires_at > ${database.clock} THEN 1 ELSE 0 END) AS live, count(*) AS total FROM ${table}`,
    )
    live += row?.live ?? 0
    expired += (row?.total ?? 0) - (row?.live ?? 0)
  }
  return { live, expired }
}

/** Indexes whose creation failed. PostgreSQL does not use them, and does not check uniqueness with them. */
async function findInvalidIndexes(database: Database): Promise<readonly string[]> {
  const rows = await database.query<{ name: string }>(
    `SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
     WHERE NOT indisvalid AND pg_table_is_visible(indrelid) AND relname LIKE 'modelmount%' ORDER BY relname`,
  )
  return rows.map(({ name }) => `The index ${name} is invalid. Run: REINDEX INDEX ${name}`)
}
