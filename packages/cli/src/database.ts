/** Location of the database with keys, usage and batches. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { expectCurrentSchema } from '@modelmount/core/database'

/** The folder of models, if no option names another one. */
export const modelsFolder = (): string => process.env.OLLAMA_MODELS || join(homedir(), '.ollama', 'models')

export const databaseIn = (folder: string): string => join(folder, 'modelmount.db')

/**
 * Returns the path of an existing database, or throws. It never creates a database, because a misspelt folder
 * would look empty.
 *
 * @param folder @default the folder of models
 */
export function existingDatabase(folder: string | undefined): string {
  const database = databaseIn(folder ?? modelsFolder())
  if (existsSync(database)) return database
  throw new Error(`No database found at ${database}. Name its folder: --data FOLDER.`)
}

/** Returns the path of an existing database, for a command that only reads. Rejects if it would be upgraded. */
export async function currentDatabase(folder: string | undefined): Promise<string> {
  const database = existingDatabase(folder)
  await expectCurrentSchema(database)
  return database
}
