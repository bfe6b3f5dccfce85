/** The replicas of fleets, in a table of a database that app processes share. */
import { checkKeys, describeValue } from '../../options/check.ts'
import { migrate } from '../../storage/migrations.ts'
import { type DatabaseLocation, openDatabase } from '../../storage/open.ts'
import { toBaseUrl } from '../upstream/options.ts'
import { fleetTables } from './tables.ts'

/** Where app processes announce themselves as replicas, and find each other. */
export interface ReplicaTableOptions {
  /** The option `database` of `createLlm()`: `postgres://…`, the app's own `Pool` of `pg`, or the path of an SQLite file. */
  readonly database: DatabaseLocation
  /** Name of the fleet, of 1 to 64 characters. Fleets of other names have other replicas. */
  readonly fleet: string
}

/** The replicas of one fleet. Methods reject with an `LlmError` `unavailable` while the database is away. */
export interface ReplicaTable {
  /** The base URLs of all replicas. Pass it as the option `replicas` of `fleetEngine()`. */
  readonly list: () => Promise<readonly string[]>
  /**
   * Adds a replica, which gets calls from all app processes within `refreshMs`. Resolves to false if it was there. Rejects with
   * a `TypeError` for an invalid URL.
   */
  add(url: string | URL): Promise<boolean>
  /** Removes a replica. Its running calls end first. Resolves to false if it was not there. */
  remove(url: string | URL): Promise<boolean>
  /** Closes the connections of the table. A pool of the app stays open. */
  close(): Promise<void>
}

/**
 * Opens the table of a fleet, and creates it in a database that has none. Rejects with a `TypeError` for an invalid option, and
 * with the error of the database if it cannot be opened.
 */
export async function openReplicaTable(options: ReplicaTableOptions): Promise<ReplicaTable> {
  checkKeys('', options, ['database', 'fleet'])
  const { database: location, fleet } = options
  if (typeof fleet !== 'string' || !/^[^\0]{1,64}$/.test(fleet))
    throw new TypeError(`Expected \`fleet\` to be a name of 1 to 64 characters, got ${describeValue(fleet)}`)
  const database = await openDatabase(location)
  try {
    await migrate(database, 'fleets', fleetTables)
  } catch (error) {
    await database.close()
    throw error
  }
  const change = async (sql: string, url: string | URL): Promise<boolean> =>
    (await database.query(`${sql} RETURNING url`, [fleet, toBaseUrl(url).href])).length > 0
  return {
    list: async () => {
      const rows = await database.query<{ url: string }>(
        'SELECT url FROM modelmount_replicas WHERE fleet = ? ORDER BY added_at, url',
        [fleet],
      )
      return rows.map(({ url }) => url)
    },
    add: (url) =>
      change(
        `INSERT INTO modelmount_replicas (fleet, url, added_at) VALUES (?, ?, ${database.clock})
         ON CONFLICT (fleet, url) DO NOTHING`,
        url,
      ),
    remove: (url) => change('DELETE FROM modelmount_replicas WHERE fleet = ? AND url = ?', url),
    close: () => database.close(),
  }
}
