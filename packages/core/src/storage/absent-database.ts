/**
 * A placeholder for a database that the host app has not set. Each query rejects with an error that names the
 * option `database`.
 */
import type { Database } from './database.ts'

/** @param what name of the API that needs a database, such as `llm.keys` */
export function createAbsentDatabase(what: string): Database {
  const refuse = async (): Promise<never> => {
    throw new TypeError(`Expected the option \`database\` of createLlm(), which ${what} needs`)
  }
  return { clock: '0', skipLocked: '', query: refuse, transaction: refuse, close: async () => {} }
}
