/** Where keys and all else is that lasts. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

export const databaseIn = (folder: string): string => join(folder, 'modelmount.db')

/** For commands that look or change, and make none: a misspelt folder would be an empty one. @param folder that of the models, if absent */
export function existingDatabase(folder: string | undefined): string {
  const database = databaseIn(folder ?? (process.env.OLLAMA_MODELS || join(homedir(), '.ollama', 'models')))
  if (existsSync(database)) return database
  throw new Error(`There is no database at ${database}. Say where it is: --data FOLDER.`)
}
