import { existsSync } from 'node:fs'

/** Throws if an SQLite file does not exist. To open it would create it. */
export function expectExisting(path: string): void {
  if (path === ':memory:') throw new TypeError('Expected the path of a database file, got :memory:')
  if (!existsSync(path)) throw new Error(`No database found at ${path}.`)
}
