/** Queries the ledger for sums per key, tenant, model or day, and for single calls. */
import type { Queries, SqlValue } from '../../storage/database.ts'
import { dayOf } from './periods.ts'
import type { TokensByKind } from './pricing.ts'

export interface UsageQuery {
  /**
   * The report covers whole days in UTC, from the day of `from` to the day of `to`, inclusive.
   *
   * @default all days
   */
  readonly from?: Date | undefined
  readonly to?: Date | undefined
  /** By tenant, all usage of a key on one day counts for the tenant of its last call on that day. */
  readonly by: 'key' | 'tenant' | 'model' | 'day'
}

export interface UsageRow extends UsageSums {
  /**
   * Depends on `by`: the id of a key or other caller, a tenant, the name of a model, or a day such as
   * `2026-11-22`.
   */
  readonly group: string
  /** Current name of the key. Only in a report by key. */
  readonly name?: string
}

export interface UsageSums {
  readonly calls: number
  readonly tokens: TokensByKind
  readonly undeliveredTokens: number
  readonly nanoUsd: bigint
  /** Number of calls of models without a price, which cost nothing. */
  readonly unpricedCalls: number
}

export interface CallsQuery {
  /** Id of a key or of another caller. @default all callers */
  readonly caller?: string | undefined
  /** Maximum number of calls to return. @default 100 */
  readonly limit?: number | undefined
}

export interface CallRow {
  /** Id of the response. */
  readonly id: string
  readonly startedAt: Date
  readonly caller: string
  readonly tenant: string
  /** Name of the key at the time of the call. */
  readonly keyName?: string
  readonly model: string
  readonly dialect?: string
  readonly tokens: TokensByKind
  /** Output tokens that were generated, but that the reader did not get. They are not in `tokens` and cost nothing. */
  readonly undeliveredTokens: number
  readonly nanoUsd: number
  /** False if the model has no price. */
  readonly isPriced: boolean
  readonly status: 'ended' | 'failed' | 'aborted'
  readonly durationMs: number
}

/**
 * SQL for the last day on which a key was used, followed by the name of the key on that day. Each day has 10
 * characters, so the maximum is the last day.
 */
const latestName = 'max(day || key_name)'
const dayLength = '2026-11-22'.length

const tenantColumn = 'COALESCE(tenant, caller)'
const columns = { key: 'caller', tenant: tenantColumn, model: 'model', day: 'day' } as const

export async function queryUsage(
  queries: Queries,
  { from = new Date(0), to, by }: UsageQuery,
): Promise<readonly UsageRow[]> {
  const group = columns[by]
  if (!Object.hasOwn(columns, by))
    throw new TypeError(`Expected \`by\` to be 'key', 'tenant', 'model' or 'day', got '${String(by)}'`)
  const rows = await queries.query<StoredSums & { group_id: string; name: string | null }>(
    `SELECT ${group} AS group_id, ${by === 'key' ? latestName : 'NULL'} AS name, sum(calls) AS calls,
       sum(input_tokens) AS input, sum(cached_input_tokens) AS cached_input, sum(cache_write_tokens) AS cache_write,
       sum(output_tokens) AS output, sum(undelivered_tokens) AS undelivered, sum(nano_usd) AS nano_usd,
       sum(unpriced_calls) AS unpriced_calls
     FROM modelmount_usage_days WHERE day >= ? AND day <= ? GROUP BY ${group} ORDER BY ${group}`,
    [dayOf(from.getTime()), to ? dayOf(to.getTime()) : '9999-12-31'],
  )
  return rows.map(({ group_id, name, calls, nano_usd, unpriced_calls, ...kinds }) => ({
    group: group_id,
    ...(name !== null && { name: name.slice(dayLength) }),
    calls: Number(calls),
    tokens: toTokens(kinds),
    undeliveredTokens: Number(kinds.undelivered),
    nanoUsd: BigInt(nano_usd),
    unpricedCalls: Number(unpriced_calls),
  }))
}

export async function queryCalls(
  queries: Queries,
  { caller, limit = 100 }: CallsQuery,
): Promise<readonly CallRow[]> {
  const rows = await queries.query<StoredCall>(
    `SELECT id, at, caller, ${tenantColumn} AS tenant, key_name, model, dialect, input_tokens AS input,
       cached_input_tokens AS cached_input, cache_write_tokens AS cache_write, output_tokens AS output,
       undelivered_tokens AS undelivered, nano_usd, priced, status, duration_ms
     FROM modelmount_calls ${caller === undefined ? '' : 'WHERE caller = ?'} ORDER BY at DESC, id LIMIT ?`,
    [...(caller === undefined ? [] : [caller]), limit] satisfies SqlValue[],
  )
  return rows.map((row) => ({
    id: row.id,
    startedAt: new Date(row.at),
    caller: row.caller,
    tenant: row.tenant,
    ...(row.key_name !== null && { keyName: row.key_name }),
    model: row.model,
    ...(row.dialect !== null && { dialect: row.dialect }),
    tokens: toTokens(row),
    undeliveredTokens: Number(row.undelivered),
    nanoUsd: row.nano_usd,
    isPriced: row.priced === 1,
    status: row.status,
    durationMs: row.duration_ms,
  }))
}

interface StoredTokens {
  readonly input: number
  readonly cached_input: number
  readonly cache_write: number
  readonly output: number
  readonly undelivered: number
}
interface StoredSums extends StoredTokens {
  readonly calls: number
  readonly nano_usd: number | bigint
  readonly unpriced_calls: number
}
interface StoredCall extends StoredTokens {
  readonly id: string
  readonly at: number
  readonly caller: string
  readonly tenant: string
  readonly key_name: string | null
  readonly model: string
  readonly dialect: string | null
  readonly nano_usd: number
  readonly priced: number
  readonly status: CallRow['status']
  readonly duration_ms: number
}

const toTokens = ({ input, cached_input, cache_write, output }: StoredTokens): TokensByKind => ({
  input: Number(input),
  cachedInput: Number(cached_input),
  cacheWrite: Number(cache_write),
  output: Number(output),
})
