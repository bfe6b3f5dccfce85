/** Implements `modelmount db check`. It opens the database itself, whether a server uses it or not. */
import { checkDatabase, type DatabaseCheck } from '@modelmount/core/database'
import { asJson, print } from '../output.ts'
import { type DatabaseOptions, locationOf } from './location.ts'

export interface CheckOptions extends DatabaseOptions {
  readonly json?: boolean
}

/** Exit code of `db check` for a database with problems. 1 means that the check itself failed. */
const problemsFound = 2

export async function check({ json = false, ...options }: CheckOptions): Promise<void> {
  const checked = await checkDatabase(locationOf(options))
  print(json ? asJson(checked) : describe(checked))
  if (checked.problems.length > 0) process.exitCode = problemsFound
}

function describe({ kind, schema, leases, problems }: DatabaseCheck): string {
  const lines = [
    kind === 'postgres' ? 'Database: PostgreSQL. Check its files with pg_amcheck.' : 'Database: SQLite',
    ...schema.map(
      ({ owner, version, supported }) => `Tables of ${owner}: ${describeVersion(version, supported)}`,
    ),
    `Leases: ${leases.live} of running calls, ${leases.expired} expired`,
    ...problems.map((problem) => `Problem: ${problem}`),
    problems.length === 0 ? 'No problems found.' : `Problems: ${problems.length}`,
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function describeVersion(version: number, supported: number): string {
  if (version === 0) return 'none'
  if (version < supported) return `version ${version}, upgraded to ${supported} at the next start of an app`
  return version === supported
    ? `version ${version}`
    : `version ${version}, but only ${supported} is supported`
}
