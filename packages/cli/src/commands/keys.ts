/** `modelmount keys`: arguments and options. */
import type { KeySettings } from '@modelmount/core'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { KeysOptions } from '../accounts/keys.ts'
import { isUsd } from '../format/money.ts'
import { splitList } from '../list.ts'
import { dataOption } from './data-option.ts'
import { type PageOptions, withPageOptions } from './page-options.ts'

interface CreateKeyOptions extends KeysOptions {
  readonly rpm?: number
  readonly tpm?: number
  readonly tpd?: number
  readonly concurrent?: number
  readonly maxOutputTokens?: number
  readonly endUserRpm?: number
  readonly endUserTpm?: number
  readonly endUserConcurrent?: number
  readonly spend?: string
  readonly per?: 'day' | 'month' | 'lifetime'
  readonly scopes?: KeySettings['scopes']
  readonly models?: readonly string[]
  readonly tier?: string
  readonly tenant?: string
  readonly expires?: string
}

/** Loaded on use, so that other commands start faster. */
const work = () => import('../accounts/keys.ts')

export const keys = new Command('keys').description('create and manage API keys')

keysCommand('create <name>', 'create a key and show its secret once')
  .option('--rpm <count>', 'requests per minute', count)
  .option('--tpm <count>', 'tokens per minute, input and output', count)
  .option('--tpd <count>', 'tokens per day, input and output', (text) => countUpTo(text, 100_000_000))
  .option('--concurrent <count>', 'concurrent calls', count)
  .option('--max-output-tokens <count>', 'output tokens of one call', count)
  .option('--end-user-rpm <count>', 'requests per minute of each end user', count)
  .option('--end-user-tpm <count>', 'tokens per minute of each end user', count)
  .option('--end-user-concurrent <count>', 'concurrent calls of each end user', count)
  .option('--spend <usd>', 'spending limit in dollars, such as 10 or 2.50', usd)
  .addOption(
    new Option('--per <period>', 'period of --spend (default: lifetime)').choices([
      'day',
      'month',
      'lifetime',
    ]),
  )
  .option('--scopes <list>', 'inference, models, admin (default: inference)', splitList)
  .option('--models <list>', 'models that the key may use (default: all)', splitList)
  .option('--tier <name>', 'name of limits in the option `tiers` of the app')
  .option(
    '--tenant <name>',
    'keys of one tenant share cached prompts and their part of the time (default: own)',
  )
  .option('--expires <time>', 'lifetime, such as 12h or 30d, or a date (default: never expires)')
  .action(async (name: string, options: CreateKeyOptions) => {
    const { scopes, models, tier, tenant, spend, per, expires, json, data } = options
    if (per !== undefined && spend === undefined) throw new Error('--per requires --spend USD.')
    const settings: KeySettings = {
      name,
      ...{ scopes, models, tier, tenant },
      limits: toLimits(options),
      ...(spend !== undefined && { spendingLimit: { usd: spend, period: per ?? 'lifetime' } }),
      ...(expires !== undefined && toExpiry(expires)),
    }
    await (await work()).create(settings, { json, data } as KeysOptions)
  })

/** Returns undefined without limits. */
function toLimits(options: CreateKeyOptions): KeySettings['limits'] {
  const { rpm, tpm, tpd, concurrent, maxOutputTokens, endUserRpm, endUserTpm, endUserConcurrent } = options
  const perEndUser = orUndefined({
    requestsPerMinute: endUserRpm,
    tokensPerMinute: endUserTpm,
    concurrent: endUserConcurrent,
  })
  return orUndefined({
    requestsPerMinute: rpm,
    tokensPerMinute: tpm,
    tokensPerDay: tpd,
    concurrent,
    maxOutputTokens,
    perEndUser,
  })
}

const orUndefined = <Values extends object>(values: Values): Values | undefined =>
  Object.values(values).some((value) => value !== undefined) ? values : undefined

withPageOptions(keysCommand('list', 'list the keys, newest first'), 'key').action(
  async (options: KeysOptions & PageOptions) => (await work()).list(options),
)

keysCommand('rotate <id>', 'create another secret for a key and show it once')
  .option('--grace <time>', 'how long the old secret stays valid; 0s ends it at once (default: 24h)')
  .action(async (id: string, options: KeysOptions) => (await work()).rotate(id, options))

keysCommand('revoke <id>', 'revoke a key, from the next call on').action(
  async (id: string, options: KeysOptions) => (await work()).revoke(id, options),
)

function keysCommand(usage: string, description: string): Command {
  return keys.command(usage).description(description).addOption(dataOption()).option('--json', 'print JSON')
}

function count(text: string): number {
  return countUpTo(text, 999_999_999)
}

function countUpTo(text: string, max: number): number {
  if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= max) return Number(text)
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${max}.`)
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
