/** `modelmount usage`: reports usage and cost. */
import { Command, InvalidArgumentError, Option } from 'commander'
import type { UsageOptions } from '../accounts/usage.ts'
import { environmentHelp } from '../environment.ts'
import { print } from '../output.ts'
import { dataOption } from './options/data-option.ts'
import { withPageOptions } from './options/page-options.ts'

export const usage = withPageOptions(new Command('usage'), 'row')
  .description('report usage and cost')
  .addOption(new Option('--by <what>', 'group by').choices(['key', 'tenant', 'model', 'day']).default('key'))
  .addOption(
    new Option('--order <what>', 'order of the rows; cost: the most expensive first')
      .choices(['group', 'cost'])
      .default('group'),
  )
  .option('--from <day>', 'first day in UTC: 2026-11-01 (default: all)', day)
  .option('--to <day>', 'last day in UTC (default: today)', day)
  .addOption(dataOption())
  .addHelpText('after', environmentHelp('database'))
  .option('--json', 'print JSON, with cost in billionths of a dollar')
  .action(async (options: UsageOptions) => {
    const ledger = await import('../accounts/usage.ts')
    print(await ledger.usage(options))
  })

function day(text: string): Date {
  const date = new Date(`${text}T00:00:00Z`)
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(date.getTime())) return date
  throw new InvalidArgumentError('Expected a day such as 2026-11-22.')
}
