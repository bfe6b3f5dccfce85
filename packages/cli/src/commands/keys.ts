/** `modelmount keys`: arguments and options. */
import type { ApiKey, KeyChanges, KeySettings } from '@modelmount/core'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { KeysOptions } from '../accounts/keys.ts'
import { environmentHelp } from '../environment.ts'
import { isUsd } from '../format/money.ts'
import { splitList } from '../list.ts'
import { dataOption } from './options/data-option.ts'
import { integer } from './options/integer.ts'
import { type PageOptions, withPageOptions } from './options/page-options.ts'

/** Settings of a key, as flags. `null` removes a setting. */
interface KeyFlags extends KeysOptions {
  readonly name?: string
  readonly rpm?: number | null
  readonly tpm?: number | null
  readonly itpm?: number | null
  readonly otpm?: number | null
  readonly tpd?: number | null
  readonly concurrent?: number | null
  readonly maxOutputTokens?: number | null
  readonly endUserRpm?: number | null
  readonly endUserTpm?: number | null
  readonly endUserItpm?: number | null
  readonly endUserOtpm?: number | null
  readonly endUserConcurrent?: number | null
  readonly spend?: string | null
  readonly per?: 'day' | 'month' | 'lifetime'
  readonly scopes?: KeySettings['scopes']
  readonly models?: readonly string[] | null
  readonly tier?: string | null
  readonly tenant?: string | null
  readonly expires?: string | null
}

/** The parsed value `none`. Commander would replace null with an empty text. */
const removed = Symbol('none')

/** Loaded on use, so that other commands start faster. */
const work = () => import('../accounts/keys.ts')

export const keys = new Command('keys').description('create and manage API keys')

withSettings(keysCommand('create <name>', 'create a key and show its secret once'), (parse) => parse).action(
  async (name: string, flags: KeyFlags) => {
    if (flags.per !== undefined && !flags.spend) throw new Error('--per requires --spend USD.')
    // Without a key to change, nothing is null.
    const settings = { name, ...toChanges(flags) } as KeySettings
    await (await work()).create(settings, flags)
  },
)

withSettings(
  keysCommand('update <id>', 'change settings of a key; none removes a setting, as in --rpm none').option(
    '--name <name>',
    'name of the key',
  ),
  (parse) => (text) => (text === 'none' ? removed : parse(text)),
).action(async (id: string, { data, json, ...given }: KeyFlags) => {
  const changes = Object.entries<unknown>(given).map(([name, value]) => [
    name,
    value === removed ? null : value,
  ])
  if (changes.length === 0) throw new Error('Name a setting to change, such as --rpm 60.')
  const flags = Object.fromEntries(changes) as KeyFlags
  await (await work()).update(id, (key) => toChanges(flags, key), { data, json } as KeysOptions)
})

keysCommand('show <id>', 'show the settings of a key').action(async (id: string, options: KeysOptions) =>
  (await work()).show(id, options),
)

/** @param wrap adds to the values that a flag accepts */
function withSettings(
  command: Command,
  wrap: <Value>(parse: (text: string) => Value) => (text: string) => Value | typeof removed,
): Command {
  const count = wrap(integer(1, 999_999_999))
  return command
    .option('--rpm <count>', 'requests per minute', count)
    .option('--tpm <count>', 'tokens per minute, input and output', count)
    .option('--itpm <count>', 'input tokens per minute, without cached ones', count)
    .option('--otpm <count>', 'output tokens per minute', count)
    .option('--tpd <count>', 'tokens per day, input and output', wrap(integer(1, 100_000_000)))
    .option('--concurrent <count>', 'concurrent calls', count)
    .option('--max-output-tokens <count>', 'output tokens of one call', count)
    .option('--end-user-rpm <count>', 'requests per minute of each end user', count)
    .option('--end-user-tpm <count>', 'tokens per minute of each end user', count)
    .option('--end-user-itpm <count>', 'input tokens per minute of each end user, without cached ones', count)
    .option('--end-user-otpm <count>', 'output tokens per minute of each end user', count)
    .option('--end-user-concurrent <count>', 'concurrent calls of each end user', count)
    .option('--spend <usd>', 'spending limit in dollars, such as 10 or 2.50', wrap(usd))
    .addOption(
      new Option('--per <period>', 'period of --spend (default: lifetime)').choices([
        'day',
        'month',
        'lifetime',
      ]),
    )
    .option('--scopes <list>', 'inference, models, admin:read, admin, fleet (default: inference)', splitList)
    .option('--models <list>', 'models that the key may use (default: all)', wrap(splitList))
    .option('--tier <name>', "one of the tiers in the server's configuration file", wrap(String))
    .option(
      '--tenant <name>',
      'keys of one tenant share cached prompts and their part of the time (default: own)',
      wrap(String),
    )
    .option(
      '--expires <time>',
      'lifetime, such as 12h or 30d, or a date (default: never expires)',
      wrap(String),
    )
}

/** @param key the key to change, whose other limits stay */
function toChanges(flags: KeyFlags, key?: ApiKey): KeyChanges {
  const { name, scopes, models, tier, tenant, expires } = flags
  return omitUndefined({
    ...{ name, scopes, models, tier, tenant },
    limits: toLimits(flags, key?.limits),
    spendingLimit: toSpendingLimit(flags, key?.spendingLimit),
    ...toExpiry(expires),
  })
}

/** Returns undefined if no flag changes a limit, and null if no limit remains. */
function toLimits(flags: KeyFlags, before: ApiKey['limits']): KeyChanges['limits'] {
  const perEndUser = merge(before?.perEndUser, {
    requestsPerMinute: flags.endUserRpm,
    tokensPerMinute: flags.endUserTpm,
    inputTokensPerMinute: flags.endUserItpm,
    outputTokensPerMinute: flags.endUserOtpm,
    concurrent: flags.endUserConcurrent,
  })
  return merge(before, {
    requestsPerMinute: flags.rpm,
    tokensPerMinute: flags.tpm,
    inputTokensPerMinute: flags.itpm,
    outputTokensPerMinute: flags.otpm,
    tokensPerDay: flags.tpd,
    concurrent: flags.concurrent,
    maxOutputTokens: flags.maxOutputTokens,
    perEndUser,
  })
}

function toSpendingLimit(
  { spend, per }: KeyFlags,
  before: ApiKey['spendingLimit'],
): KeyChanges['spendingLimit'] {
  const amount = spend === undefined && per !== undefined ? before?.usd : spend
  if (amount === undefined && per !== undefined) throw new Error('--per requires --spend USD.')
  return amount === undefined || amount === null
    ? amount
    : { usd: amount as Usd, period: per ?? before?.period ?? 'lifetime' }
}

type Usd = NonNullable<ApiKey['spendingLimit']>['usd']

/** Core checks the values. */
function toExpiry(text: KeyFlags['expires']): Pick<KeyChanges, 'expiresIn' | 'expiresAt'> {
  if (text === undefined || text === null) return { expiresAt: text }
  return /^\d{4}-/.test(text)
    ? { expiresAt: text as Extract<KeySettings['expiresAt'], string> }
    : { expiresIn: text as Extract<KeySettings['expiresIn'], string> }
}

/** Returns undefined without changes, and null if nothing remains. */
function merge<Values extends object>(
  before: Values | undefined,
  changes: { readonly [Name in keyof Values]: Values[Name] | null },
): Values | null | undefined {
  if (Object.values(changes).every((value) => value === undefined)) return undefined
  const merged = Object.entries({ ...before, ...omitUndefined(changes) }).filter(
    ([, value]) => value !== null,
  )
  return merged.length > 0 ? (Object.fromEntries(merged) as Values) : null
}

const omitUndefined = <Values extends object>(values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values

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
  return keys
    .command(usage)
    .description(description)
    .addOption(dataOption())
    .addHelpText('after', environmentHelp('database'))
    .option('--json', 'print JSON')
}

function usd(text: string): string {
  if (isUsd(text)) return text
  throw new InvalidArgumentError('Expected dollars, such as 10 or 2.50.')
}
