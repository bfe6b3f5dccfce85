/** `modelmount usage`: what was used, and what it cost. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { print } from '../output.ts'
import type { UsageOptions } from '../usage.ts'

export const usage = new Command('usage')
  .description('what keys have used, and what it cost')
  .addOption(new Option('--by <what>', 'one line for each').choices(['key', 'model', 'day']).default('key'))
  .option('--from <day>', 'the first day, in UTC: 2026-11-01 (default: all)', day)
  .option('--to <day>', 'the last day (default: today)', day)
  .option('--data <folder>', "the folder of the server's modelmount.db (default: that of the models)")
  .option('--json', 'as JSON, with cost in billionths of a dollar')
  .action(async (options: UsageOptions) => {
    const ledger = await import('../usage.ts')
    print(await ledger.usage(options))
  })

function day(text: string): Date {
  const date = new Date(`${text}T00:00:00Z`)
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(date.getTime())) return date
  throw new InvalidArgumentError('Expected a day such as 2026-11-22.')
}
