/** Queries the ledger for sums per key, tenant, model or day, and for single calls. */
import { invalidRequest } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Queries, SqlValue } from '../../storage/database.ts'
import { checkLimit, type PageQuery, unknownEntry } from '../page.ts'
import type { TokensByKind } from '../prices/pricing.ts'
import { dayOf, monthOf } from './periods.ts'

/** `after` is the `group` of the last row of the previous page. */
export interface UsageQuery extends PageQuery {
  /**
   * The report covers whole days in UTC, from the day of `from` to the day of `to`, inclusive. After a year,
   * there are only sums of months: the report covers a month if `from` and `to` cover one of its days.
   *
   * @default all days
   */
  readonly from?: Date | undefined
  /** Last day of the report, inclusive. @default all days */
  readonly to?: Date | undefined
  /** By tenant, all usage of a key on one day counts for the tenant of its last call on that day. */
  readonly by: 'key' | 'tenant' | 'model' | 'day'
  /** Id of a key or of another caller. @default all callers */
  readonly caller?: string | undefined
  /** Name of a model, as in a report by model. @default all models */
  readonly model?: string | undefined
  /**
   * `cost`: the most expensive rows come first, and those of the same cost by `group`. There is no next page, so `after`
   * is rejected.
   *
   * @default 'group'
   */
  readonly order?: 'group' | 'cost' | undefined
}

/** Sums of one group of calls. */
export interface UsageRow extends UsageSums {
  /**
   * Depends on `by`: the id of a key or other caller, a tenant, the name of a model, or a day such as
   * `2026-11-22`. After a year, it is a month such as `2025-11` instead of a day.
   */
  readonly group: string
  /** Current name of the key. Only in a report by key. */
  readonly name?: string
}

export interface UsageSums {
  /** Number of calls. */
  readonly calls: number
  /** Tokens of the calls by kind, as they are charged. */
  readonly tokens: TokensByKind
  /** Output tokens that were generated, but that readers did not get. They cost nothing. */
  readonly undeliveredTokens: number
  /** Cost in billionths of a dollar. */
  readonly nanoUsd: bigint
  /** Number of calls that used tokens of a model without a price, which cost nothing. */
  readonly unpricedCalls: number
  /** The part of these sums that items of batches have used. */
  readonly batch: BatchSums
}

export interface BatchSums {
  readonly calls: number
  readonly tokens: TokensByKind
  readonly nanoUsd: bigint
}

/** `after` is the id of the last call of the previous page. */
export interface CallsQuery extends PageQuery {
  /** Id of a key or of another caller. @default all callers */
  readonly caller?: string | undefined
  /** Maximum number of calls, from 1 to 1,000. @default 100 */
  readonly limit?: number | undefined
}

/** One recorded call. */
export interface CallRow {
  /** Id of the response. */
  readonly id: string
  /** When the call began. */
  readonly startedAt: Date
  /** Id of the caller. */
  readonly caller: string
  /** Tenant of the caller at the time of the call. */
  readonly tenant: string
  /** Name of the key at the time of the call. */
  readonly keyName?: string
  /** Name of the model with its tag, such as `llama3.2:latest`. */
  readonly model: string
  /** The API that received the call, such as `openai`. Absent for calls of the app. */
  readonly dialect?: string
  /** Tokens of the call by kind, as they are charged. */
  readonly tokens: TokensByKind
  /** Output tokens that were generated, but that the reader did not get. They are not in `tokens` and cost nothing. */
  readonly undeliveredTokens: number
  /** Cost in billionths of a dollar. */
  readonly nanoUsd: number
  /** False if the call has used tokens of a model without a price. */
  readonly isPriced: boolean
  /** Whether the call was an item of a batch, at half the price. */
  readonly isBatch: boolean
  /** `killed`: the app process was killed during the call. The tokens are those of the last progress note. */
  readonly status: 'ended' | 'failed' | 'aborted' | 'killed'
  /** Milliseconds from the start of the call to its end. */
  readonly durationMs: number
}

/**
 * SQL for the last day on which a key was used, followed by the name of the key on that day. Each day has 10
 * characters, so the maximum is the last day. A month, such as `2025-11`, counts as `2025-11-00`.
 */
const latestName = `max(substr(day || '-00', 1, 10) || key_name)`
const dayLength = '2026-11-22'.length

const tenantColumn = 'COALESCE(tenant, caller)'
const columns = { key: 'caller', tenant: tenantColumn, model: 'model', day: 'day' } as const
const orders = {
  group: (group: string) => group,
  cost: (group: string) => `sum(nano_usd) DESC, ${group}`,
} as const

export async function queryUsage(queries: Queries, query: UsageQuery): Promise<readonly UsageRow[]> {
  const { by } = query
  checkUsageQuery(query)
  const size = checkLimit(query.limit)
  const conditions = await toConditions(queries, query)
  // Before the sums, so that a call which ends meanwhile is never in this part only.
  const batches = await queryBatches(queries, by, conditions)
  const { sql, values } = selectPage(query, conditions, size)
  const rows = await queries.query<StoredSums & { group_id: string; name: string | null }>(
    `SELECT ${columns[by]} AS group_id, ${by === 'key' ? latestName : 'NULL'} AS name, ${toSums('')},
       sum(undelivered_tokens) AS undelivered, sum(unpriced_calls) AS unpriced_calls ${sql}`,
    values,
    { isSlow: true },
  )
  return rows.map(({ group_id, name, undelivered, unpriced_calls, ...sums }) => ({
    group: group_id,
    ...(name !== null && { name: name.slice(dayLength) }),
    ...toBatchSums(sums),
    undeliveredTokens: Number(undelivered),
    unpricedCalls: Number(unpriced_calls),
    batch: batches.get(group_id) ?? noBatches,
  }))
}

/**
 * Returns the parts of batches, by group. In the query for all sums, their columns would double the time for which SQLite
 * sorts the rows.
 */
async function queryBatches(
  queries: Queries,
  by: UsageQuery['by'],
  conditions: readonly SqlPart[],
): Promise<ReadonlyMap<string, BatchSums>> {
  const group = columns[by]
  const rows = await queries.query<StoredBatchSums & { group_id: string }>(
    `SELECT ${group} AS group_id, ${toSums('batch_')} FROM modelmount_usage_days
     ${toWhere([...conditions, { sql: 'batch_calls > 0' }])} GROUP BY ${group}`,
    conditions.flatMap(({ values }) => values),
    { isSlow: true },
  )
  return new Map(rows.map(({ group_id, ...sums }) => [group_id, toBatchSums(sums)]))
}

/** @param prefix of the names of columns */
const toSums = (prefix: '' | 'batch_'): string =>
  `sum(${prefix}calls) AS calls, sum(${prefix}input_tokens) AS input,
   sum(${prefix}cached_input_tokens) AS cached_input, sum(${prefix}cache_write_tokens) AS cache_write,
   sum(${prefix}output_tokens) AS output, sum(${prefix}nano_usd) AS nano_usd`

const toBatchSums = (sums: StoredBatchSums): BatchSums => ({
  calls: Number(sums.calls),
  tokens: toTokens(sums),
  nanoUsd: BigInt(sums.nano_usd),
})

const noBatches: BatchSums = {
  calls: 0,
  tokens: { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 },
  nanoUsd: 0n,
}

function checkUsageQuery({ by, order = 'group', after }: UsageQuery): void {
  if (!Object.hasOwn(columns, by))
    throw new TypeError(`Expected \`by\` to be 'key', 'tenant', 'model' or 'day', got '${String(by)}'`)
  if (!Object.hasOwn(orders, order))
    throw new TypeError(`Expected \`order\` to be 'group' or 'cost', got '${String(order)}'`)
  if (order === 'cost' && after !== undefined)
    throw invalidRequest('after: Expected no page, since a report in the order of cost has only one.', {
      param: 'after',
    })
}

async function toConditions(
  queries: Queries,
  { from, to, by, after, caller, model }: UsageQuery,
): Promise<readonly SqlPart[]> {
  return [
    ...(from ? [{ sql: 'day >= ?', values: [await firstDayOf(queries, from)] }] : []),
    ...(to ? [{ sql: 'day <= ?', values: [dayOf(to.getTime())] }] : []),
    ...isCaller(caller),
    ...(model !== undefined ? [{ sql: 'model = ?', values: [toStorableId(model)] }] : []),
    ...(after !== undefined ? [{ sql: `${columns[by]} > ?`, values: [toStorableId(after)] }] : []),
  ]
}

function isCaller(caller: string | undefined): readonly SqlPart[] {
  if (caller === undefined) return []
  if (typeof caller !== 'string')
    throw new TypeError(`Expected \`caller\` to be the id of a caller, got ${typeof caller}`)
  return [{ sql: 'caller = ?', values: [toStorableId(caller)] }]
}

/** Returns the SQL after the columns of a report, which selects one page of its groups. */
function selectPage(
  { by, order = 'group' }: UsageQuery,
  conditions: readonly SqlPart[],
  size: number,
): SqlPart {
  const group = columns[by]
  const toPage = (conditions: readonly SqlPart[]): SqlPart => ({
    sql: `FROM modelmount_usage_days ${toWhere(conditions)} GROUP BY ${group} ORDER BY ${orders[order](group)} LIMIT ?`,
    values: [...conditions.flatMap(({ values }) => values), size],
  })
  const page = toPage(conditions)
  if (by === 'model' || by === 'day') return page
  // There may be many keys and tenants. SQLite would sort all rows of these days with all of their columns. So it first
  // finds the groups of the page, which reads few columns, and then the rows of these groups by an index.
  return toPage([...conditions, { sql: `${group} IN (SELECT ${group} ${page.sql})`, values: page.values }])
}

interface SqlPart {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

export async function queryCalls(
  queries: Queries,
  { caller, limit = 100, after }: CallsQuery,
): Promise<readonly CallRow[]> {
  const size = checkLimit(limit)
  const last = after === undefined ? undefined : await findCall(queries, after)
  const conditions = [
    ...isCaller(caller),
    ...(last ? [{ sql: 'at <= ? AND (at < ? OR id > ?)', values: [last.at, last.at, last.id] }] : []),
  ]
  const rows = await queries.query<StoredCall>(
    `SELECT id, at, caller, ${tenantColumn} AS tenant, key_name, model, dialect, input_tokens AS input,
       cached_input_tokens AS cached_input, cache_write_tokens AS cache_write, output_tokens AS output,
       undelivered_tokens AS undelivered, nano_usd, priced, batch, status, duration_ms
     FROM modelmount_calls ${toWhere(conditions)} ORDER BY at DESC, id LIMIT ?`,
    [...conditions.flatMap(({ values }) => values), size],
    { isSlow: true },
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
    isBatch: row.batch === 1,
    status: row.status,
    durationMs: row.duration_ms,
  }))
}

/** Returns the day of `from`, or its month if the days of this month are merged. */
async function firstDayOf(queries: Queries, from: Date): Promise<string> {
  const month = monthOf(from.getTime())
  const merged = await queries.query('SELECT day FROM modelmount_usage_days WHERE day = ? LIMIT 1', [month])
  return merged.length > 0 ? month : dayOf(from.getTime())
}

/** Rejects an id that no row has. Retention may have deleted the row. */
async function findCall(queries: Queries, id: string): Promise<Pick<StoredCall, 'id' | 'at'>> {
  const [row] = await queries.query<Pick<StoredCall, 'id' | 'at'>>(
    'SELECT id, at FROM modelmount_calls WHERE id = ?',
    [toStorableId(id)],
  )
  if (!row) throw unknownEntry('a call')
  return row
}

const toWhere = (conditions: readonly { readonly sql: string }[]): string =>
  conditions.length > 0 ? `WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}` : ''

interface StoredTokens {
  readonly input: number
  readonly cached_input: number
  readonly cache_write: number
  readonly output: number
}
interface StoredBatchSums extends StoredTokens {
  readonly calls: number
  readonly nano_usd: number | bigint
}
interface StoredSums extends StoredBatchSums {
  readonly undelivered: number
  readonly unpriced_calls: number
}
interface StoredCall extends StoredTokens {
  readonly undelivered: number
  readonly id: string
  readonly at: number
  readonly caller: string
  readonly tenant: string
  readonly key_name: string | null
  readonly model: string
  readonly dialect: string | null
  readonly nano_usd: number
  readonly priced: number
  readonly batch: number
  readonly status: CallRow['status']
  readonly duration_ms: number
}

const toTokens = ({ input, cached_input, cache_write, output }: StoredTokens): TokensByKind => ({
  input: Number(input),
  cachedInput: Number(cached_input),
  cacheWrite: Number(cache_write),
  output: Number(output),
})
