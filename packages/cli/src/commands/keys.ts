/** `modelmount keys`: what can be said, and what it means. */
import type { KeySettings } from '@modelmount/core'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { KeysOptions } from '../keys.ts'
import { isUsd } from '../money.ts'

interface CreateKeyOptions extends KeysOptions {
  readonly rpm?: number
  readonly tpm?: number
  readonly concurrent?: number
  readonly spend?: string
  readonly per?: 'day' | 'month' | 'lifetime'
  readonly scopes?: KeySettings['scopes']
  readonly models?: readonly string[]
  readonly tier?: string
  readonly expires?: string
}

/** Other commands start faster without what does it. */
const work = () => import('../keys.ts')

export const keys = new Command('keys').description('make and manage API keys')

keysCommand('create <name>', 'make a key, and show its secret once')
  .option('--rpm <count>', 'requests per minute', count)
  .option('--tpm <count>', 'tokens per minute, read and written', count)
  .option('--concurrent <count>', 'calls at the same time', count)
  .option('--spend <usd>', 'the most that it may spend, such as 10 or 2.50', usd)
  .addOption(
    new Option('--per <period>', 'what --spend is for (default: lifetime)').choices([
      'day',
      'month',
      'lifetime',
    ]),
  )
  .option('--scopes <list>', 'inference, models, admin (default: inference)', list)
  .option('--models <list>', 'the models that it may use (default: all)', list)
  .option('--tier <name>', 'limits that the app has a name for')
  .option('--expires <time>', 'how long it lives, such as 12h or 30d, or a date (default: for ever)')
  .action(async (name: string, options: CreateKeyOptions) => {
    const { rpm, tpm, concurrent, spend, per, expires, json, data, ...rest } = options
    if (per !== undefined && spend === undefined) throw new Error('--per is for --spend, and none is said.')
    const limits = { requestsPerMinute: rpm, tokensPerMinute: tpm, concurrent }
    const isLimited = Object.values(limits).some((limit) => limit !== undefined)
    const settings: KeySettings = {
      name,
      ...rest,
      ...(isLimited && { limits }),
      ...(spend !== undefined && { spendingLimit: { usd: spend, period: per ?? 'lifetime' } }),
      ...(expires !== undefined && toExpiry(expires)),
    }
    await (await work()).create(settings, { json, data } as KeysOptions)
  })

keysCommand('list', 'list the keys').action(async (options: KeysOptions) => (await work()).list(options))

keysCommand('rotate <id>', 'give a key another secret, and show it once')
  .option('--grace <time>', 'how long the old one is let in yet: 0s for not at all (default: 24h)')
  .action(async (id: string, options: KeysOptions) => (await work()).rotate(id, options))

keysCommand('revoke <id>', 'let a key in no more, from the next call on').action(
  async (id: string, options: KeysOptions) => (await work()).revoke(id, options),
)

function keysCommand(usage: string, description: string): Command {
  return keys
    .command(usage)
    .description(description)
    .option('--data <folder>', 'folder with modelmount.db (default: that of the models)')
    .option('--json', 'print JSON')
}

function count(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number from 1 on.')
}

/** Core checks the values. */
const toExpiry = (text: string): Pick<KeySettings, 'expiresIn' | 'expiresAt'> =>
  /^\d{4}-/.test(text)
    ? { expiresAt: text as Extract<KeySettings['expiresAt'], string> }
    : { expiresIn: text as Extract<KeySettings['expiresIn'], string> }

function usd(text: string): string {
  if (isUsd(text)) return text
  throw new InvalidArgumentError('Expected dollars, such as 10 or 2.50.')
}

/** The names of scopes are checked where keys are made. */
function list<Item extends string>(text: string): readonly Item[] {
  return text.split(',').map((one) => one.trim() as Item)
}
