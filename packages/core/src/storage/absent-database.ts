/** Stands for a missing `database` option: every query rejects with an error that names it. */
import type { Database } from './database.ts'

/** @param what the API that needs a database: `llm.keys` */
export function createAbsentDatabase(what: string): Database {
  const refuse = async (): Promise<never> => {
    throw new TypeError(`Expected the option \`database\` of createLlm(), which ${what} needs`)
  }
  return { clock: '0', query: refuse, transaction: refuse, close: async () => {} }
}
