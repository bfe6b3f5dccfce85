/** The database of an app that has asked for none: whoever needs it hears how to have one. */
import type { Database } from './database.ts'

/** @param what needs it, as `llm.keys` */
export function createAbsentDatabase(what: string): Database {
  const refuse = async (): Promise<never> => {
    throw new TypeError(`Expected the option \`database\` of createLlm(), which ${what} needs`)
  }
  return { clock: '0', query: refuse, transaction: refuse, close: async () => {} }
}
