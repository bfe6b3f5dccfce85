/** `modelmount tenants`: arguments and options. */
import { Command, Option } from 'commander'
import type { TenantDeletionOptions } from '../accounts/tenants.ts'
import { environmentHelp } from '../environment.ts'
import { dataOption } from './options/data-option.ts'

export const tenants = new Command('tenants').description('delete the data of tenants')

tenants
  .command('delete <id>')
  .description('delete the keys, usage and prompt states of a tenant; running servers follow within 10 s')
  .addOption(
    new Option('--usage <what>', 'delete usage, or keep anonymous sums per day and model')
      .choices(['delete', 'anonymize'])
      .default('delete'),
  )
  .addOption(dataOption())
  .addHelpText('after', environmentHelp('database'))
  .option('--json', 'print JSON')
  .action(async (id: string, options: TenantDeletionOptions) => {
    const { deleteTenant } = await import('../accounts/tenants.ts')
    await deleteTenant(id, options)
  })
