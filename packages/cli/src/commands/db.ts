/** `modelmount db`: arguments and options. */
import { Command, Option } from 'commander'
import type { BackupOptions } from '../db/backup.ts'
import type { CheckOptions } from '../db/check.ts'
import { environmentHelp } from '../environment.ts'
import { dataOption } from './options/data-option.ts'

export const db = new Command('db').description('back up and check the database of keys and usage')

dbCommand('backup <file>', 'copy the database to a file, also while a server uses it')
  .option('--force', 'replace an existing file')
  .action(async (file: string, options: BackupOptions) => {
    // Loaded on use, so that other commands start faster.
    const { backup } = await import('../db/backup.ts')
    await backup(file, options)
  })

dbCommand(
  'check',
  'check integrity, schema versions, references and leases; exit code 2 if there are problems',
)
  .option('--json', 'print JSON')
  .action(async (options: CheckOptions) => {
    const { check } = await import('../db/check.ts')
    await check(options)
  })

function dbCommand(usage: string, description: string): Command {
  return db
    .command(usage)
    .description(description)
    .addOption(dataOption())
    .addHelpText('after', environmentHelp('database'))
    .addOption(
      new Option(
        '--database <location>',
        'path of a database file, or postgres://… instead of --data',
      ).conflicts('data'),
    )
}
