/** Implements `modelmount db backup`. It opens the database itself, whether a server uses it or not. */
import { statSync } from 'node:fs'
import { backupDatabase } from '@modelmount/core/database'
import { humanBytes } from '../format/human.ts'
import { print } from '../output.ts'
import { type DatabaseOptions, locationOf } from './location.ts'

export interface BackupOptions extends DatabaseOptions {
  readonly force?: boolean
}

export async function backup(file: string, { force = false, ...options }: BackupOptions): Promise<void> {
  const location = locationOf(options)
  await backupDatabase(location, file, { overwrite: force }).catch(nameFlag)
  print(`Backed up ${location} to ${file} (${humanBytes(statSync(file).size)}).\n`)
}

/** Rethrows an error, with the flag instead of the option in its message. */
function nameFlag(error: Error): never {
  error.message = error.message.replace('`overwrite`', '--force')
  throw error
}
