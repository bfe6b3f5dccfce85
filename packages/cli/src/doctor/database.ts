/** Checks the database: whether it can be reached and written, its disk, and its tables. */
import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseLocation } from '@modelmount/core'
import { checkDatabase, expectWritable, type SchemaState } from '@modelmount/core/database'
import { canWrite } from './access.ts'
import { type Finding, findingsOf, quoted } from './finding.ts'

const { ok, warning, problem } = findingsOf('database')

/** Numbers of file systems on other machines, from `man 2 statfs`. */
const networkDisks: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  16914839: '9P',
  1702057286: 'FUSE',
  2035054128: 'overlayfs',
}

/** @param location undefined if no option names one and none exists */
export async function checkDatabaseOf(location: DatabaseLocation | undefined): Promise<readonly Finding[]> {
  if (location === undefined) return [ok('None is used')]
  if (location === ':memory:')
    return [warning('Keys and usage are lost when the server ends.', 'modelmount serve --data FOLDER')]
  if (typeof location !== 'string') return [ok('The pool of the configuration file is not checked')]
  if (/^postgres(ql)?:\/\//.test(location)) return checkTables(location, 'PostgreSQL')
  const disk = checkDisk(location)
  if (disk?.status === 'problem' || !existsSync(location))
    return disk ? [disk] : [ok(`serve creates ${location}`)]
  return [...(disk ? [disk] : []), ...(await checkTables(location, location))]
}

function checkDisk(file: string): Finding | undefined {
  const folder = dirname(file)
  if (!existsSync(folder)) return undefined
  const network = networkDisks[statfsSync(folder).type]
  if (network === 'overlayfs')
    return warning(
      `${folder} is a layer of the container, so the database is lost with the container.`,
      'docker run --volume modelmount:/data … modelmount serve --data /data',
    )
  if (network === 'FUSE')
    return warning(
      `${folder} is on a FUSE disk. SQLite needs working locks.`,
      'modelmount serve --data FOLDER_ON_A_LOCAL_DISK',
    )
  if (network !== undefined)
    return problem(
      `${folder} is on ${network}. SQLite can damage a database on a disk of another machine.`,
      'modelmount serve --data FOLDER_ON_A_LOCAL_DISK',
    )
  const unwritable = [folder, file].find((path) => existsSync(path) && !canWrite(path))
  return unwritable === undefined
    ? undefined
    : problem(`${unwritable} cannot be written.`, `sudo chown -R "$(id -un)" ${quoted(folder)}`)
}

async function checkTables(location: string, name: string): Promise<readonly Finding[]> {
  try {
    // The whole file is only read by `db check`.
    const { schema, problems } = await checkDatabase(location, { integrity: false })
    if (schema.length > 0 && schema.every(({ version }) => version === 0))
      return [ok(`${name} is empty, and serve creates its tables`)]
    const found = problems.map((text) => problem(text, fixFor(text, name)))
    if (found.length > 0) return found
    await expectWritable(location)
    return [describeVersions(schema, name)]
  } catch (error) {
    return [describeFailure(error as NodeJS.ErrnoException, name)]
  }
}

const fixFor = (text: string, name: string): string =>
  /schema version|too new/.test(text)
    ? 'npm install --global modelmount@latest'
    : name === 'PostgreSQL'
      ? 'modelmount db check --database postgres://…'
      : `modelmount db check --database ${quoted(name)}`

function describeVersions(schema: readonly SchemaState[], name: string): Finding {
  const older = schema.filter(({ version, supported }) => version < supported).map(({ owner }) => owner)
  return older.length === 0
    ? ok(`${name} can be written, and its tables are up to date`)
    : warning(
        `The next start upgrades the tables of ${older.join(', ')} in ${name}. Older servers then refuse to start.`,
        name === 'PostgreSQL'
          ? "pg_dump --format=custom --table='modelmount_*' --file=modelmount.dump DATABASE_URL"
          : `modelmount db backup backup.db --data ${quoted(dirname(name))}`,
      )
}

function describeFailure(error: NodeJS.ErrnoException, name: string): Finding {
  const reason = error.code ?? error.message
  if (name === 'PostgreSQL')
    return problem(`${name} cannot be used: ${reason}.`, 'pg_isready -h HOST -p PORT')
  return /locked|busy/i.test(error.message)
    ? problem(`Another process locks ${name}.`, `fuser -v ${quoted(name)}`)
    : problem(`${name} cannot be used: ${error.message}.`, fixFor('', name))
}
