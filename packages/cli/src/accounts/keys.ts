/** Implements `modelmount keys`. It opens the database itself, so no server has to run. */
import {
  type ApiKey,
  createLlm,
  type KeyChanges,
  type KeySettings,
  type KeyWithSecret,
  type Llm,
} from '@modelmount/core'
import type { PageOptions } from '../commands/options/page-options.ts'
import { currentDatabase, databaseOf, existingDatabase } from '../database.ts'
import { humanTime } from '../format/human.ts'
import { formatUsd } from '../format/money.ts'
import { table } from '../format/table.ts'
import { asJson, noteNextPage, print } from '../output.ts'
import { record } from './record.ts'

export interface KeysOptions {
  /** The folder with `modelmount.db`, or `postgres://…`. @default the folder of models */
  readonly data?: string
  readonly json?: boolean
}

export const create = (settings: KeySettings, options: KeysOptions): Promise<void> =>
  withKeys(options.data === undefined ? undefined : databaseOf(options.data), async (keys, llm) => {
    const change = { tenant: settings.tenant, changes: settings, describe: nameKey }
    printSecret(await record(llm, 'createKey', change, () => keys.create(settings)), options)
  })

export const rotate = async (
  id: string,
  { grace, ...options }: KeysOptions & { readonly grace?: `${number}s` },
): Promise<void> =>
  withKeys(existingDatabase(options.data), async (keys, llm) => {
    const rotation = grace === undefined ? {} : { grace }
    const make = () => keys.rotate(id, rotation)
    printSecret(await record(llm, 'rotateKey', { target: id, changes: rotation }, make), options)
  })

export const update = async (
  id: string,
  changesOf: (key: ApiKey) => KeyChanges,
  { data, json }: KeysOptions,
): Promise<void> =>
  withKeys(existingDatabase(data), async (keys, llm) => {
    const changes = changesOf(await keys.get(id))
    const tenant = changes.tenant ?? undefined
    const make = () => keys.update(id, changes)
    const key = await record(llm, 'updateKey', { target: id, tenant, changes }, make)
    print(json ? asJson(key) : describeKey(key))
  })

export const show = async (id: string, { data, json }: KeysOptions): Promise<void> =>
  withKeys(await currentDatabase(data), async (keys) => {
    const key = await keys.get(id)
    print(json ? asJson(key) : describeKey(key))
  })

export const revoke = async (id: string, options: KeysOptions): Promise<void> =>
  withKeys(existingDatabase(options.data), async (keys, llm) => {
    const key = await record(llm, 'revokeKey', { target: id }, () => keys.revoke(id))
    print(options.json ? asJson(key) : `Revoked the key ${key.name} (${key.id}).\n`)
  })

export const list = async ({ json, data, limit, after }: KeysOptions & PageOptions): Promise<void> =>
  withKeys(await currentDatabase(data), async (keys) => {
    const page = await keys.list({ limit, after })
    print(json ? asJson(page) : table([columns, ...page.map(toRow)]))
    noteNextPage(page.length, limit, page.at(-1)?.id)
  })

/**
 * @param database `postgres://…`, or the path of a file, which is created if it does not exist. If absent,
 *   `modelmount.db` in the folder of models
 */
async function withKeys(
  database: string | undefined,
  work: (keys: Llm['keys'], llm: Llm) => Promise<void>,
): Promise<void> {
  const llm = await createLlm({
    ...{ auth: 'keys', batches: { run: false } },
    ...(database !== undefined && { database }),
  })
  try {
    await work(llm.keys, llm)
  } finally {
    await llm.close()
  }
}

const nameKey = ({ key }: KeyWithSecret) => ({ target: key.id, tenant: key.tenant })

function printSecret({ key, secret }: KeyWithSecret, { json = false }: KeysOptions): void {
  if (json) print(asJson({ key, secret }))
  else print(`${secret}\n\nThis is the secret of ${key.name} (${key.id}). It is shown once: store it now.\n`)
}

const columns = ['NAME', 'ID', 'TENANT', 'KEY', 'STATUS', 'SCOPES', 'MODELS', 'LIMITS', 'LAST USED']

const describeKey = (key: ApiKey): string =>
  table(
    [
      ['name', key.name],
      ['id', key.id],
      ['tenant', key.tenant === key.id ? 'own' : key.tenant],
      ['key', key.hint],
      ['status', key.status],
      ['scopes', key.scopes.join(', ')],
      ['models', key.models?.join(', ') ?? 'all'],
      ['limits', limitsOf(key)],
      ['created', key.createdAt.toISOString()],
      ['expires', key.expiresAt?.toISOString() ?? 'never'],
      ...(key.revokedAt ? [['revoked', key.revokedAt.toISOString()]] : []),
      ['last used', key.lastUsedAt?.toISOString() ?? 'never'],
    ],
    '  ',
  )

const toRow = (key: ApiKey): readonly string[] => [
  key.name,
  key.id,
  key.tenant === key.id ? 'own' : key.tenant,
  key.hint,
  key.status,
  key.scopes.join(','),
  key.models?.join(',') ?? 'all',
  limitsOf(key),
  key.lastUsedAt ? humanTime(key.lastUsedAt.toISOString()) : 'never',
]

function limitsOf({ limits = {}, spendingLimit, tier }: ApiKey): string {
  const { maxOutputTokens, perEndUser = {} } = limits
  const parts = [
    tier,
    ...ratesOf(limits),
    maxOutputTokens && `${maxOutputTokens} output tokens a call`,
    ...ratesOf(perEndUser).map((rate) => `${rate} an end user`),
    spendingLimit &&
      `${formatUsd(spendingLimit.usd)} ${spendingLimit.period === 'lifetime' ? 'in all' : `a ${spendingLimit.period}`}`,
  ].filter(Boolean)
  return parts.length > 0 ? parts.join(', ') : 'none'
}

const ratesOf = (limits: Rates): readonly string[] =>
  Object.entries(rateUnits).flatMap(([name, unit]) => {
    const rate = limits[name as keyof Rates]
    return rate === undefined ? [] : `${rate} ${unit}`
  })

const rateUnits = {
  requestsPerMinute: 'rpm',
  tokensPerMinute: 'tpm',
  inputTokensPerMinute: 'itpm',
  outputTokensPerMinute: 'otpm',
  tokensPerDay: 'tpd',
  concurrent: 'at once',
} satisfies Record<keyof Rates, string>

type Rates = Omit<NonNullable<ApiKey['limits']>, 'maxOutputTokens' | 'perEndUser'>
