/** Location of the database with keys, usage and batches. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { expectCurrentSchema } from '@modelmount/core/database'

/** The folder of models, if no option names another one. */
export const modelsFolder = (): string => process.env.OLLAMA_MODELS || join(homedir(), '.ollama', 'models')

/** Returns the database that `--data` names: a PostgreSQL URL, or `modelmount.db` in a folder. */
export const databaseOf = (data: string): string => (isPostgresUrl(data) ? data : join(data, 'modelmount.db'))

const isPostgresUrl = (data: string): boolean => /^postgres(ql)?:\/\//.test(data)

/**
 * Returns the database that `--data` names, or throws if its file does not exist. A misspelt folder would look empty.
 *
 * @param data @default the folder of models
 */
export function existingDatabase(data: string | undefined): string {
  const database = databaseOf(data ?? modelsFolder())
  if (isPostgresUrl(database) || existsSync(database)) return database
  throw new Error(`No database found at ${database}. Name its folder: --data FOLDER.`)
}

/** Returns an existing database, for a command that only reads. Rejects if it would be upgraded. */
export async function currentDatabase(data: string | undefined): Promise<string> {
  const database = existingDatabase(data)
  await expectCurrentSchema(database)
  return database
}
