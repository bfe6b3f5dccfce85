/** Reads calls over time: one row per interval, or per interval and model or key. */
import { invalidRequest } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Queries, SqlValue } from '../../storage/database.ts'
import { groupBy } from '../../util/group-by.ts'
import { type Percentiles, percentilesOf } from './buckets.ts'
import { dayMs, hourMs } from './traffic-recorder.ts'

export interface TrafficQuery {
  /** Length of the intervals, in UTC. @default 'hour' */
  readonly interval?: 'hour' | 'day' | undefined
  /** The report begins with the interval that contains this time. @default 24 intervals before `to` */
  readonly from?: Date | undefined
  /** The report ends before this time. @default now */
  readonly to?: Date | undefined
  /** By key, the report has the keys and other callers with most calls: 100, or fewer for more than 20 intervals. @default the sums of all */
  readonly by?: 'model' | 'key' | undefined
  /** Name of a model. @default all models */
  readonly model?: string | undefined
  /** Id of a key or of another caller. @default all callers */
  readonly key?: string | undefined
}

export interface TrafficRow {
  /** Beginning of the interval. */
  readonly at: Date
  /** Name of a model, empty for models that do not exist. Or id of a caller, empty for the app itself. */
  readonly group?: string
  /** Current name of the key. Only by key. */
  readonly name?: string
  /** Calls that ended in the interval, also those that have failed or were rejected. */
  readonly calls: number
  /** Calls that have failed or were rejected. A client that leaves is no error. */
  readonly errors: number
  /** With those from the prompt cache. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly nanoUsd: bigint
  /** Milliseconds from the start of a call to its first output token, at most 10 % off. */
  readonly firstTokenMs: Percentiles | undefined
  readonly durationMs: Percentiles | undefined
}

/** Intervals in one report. */
const maxIntervals = 1_000
const maxGroups = 100
/** Rows by key in one report, so that their percentiles do not hold up the event loop. */
const maxRowsByKey = 2_000

export async function queryTraffic(queries: Queries, query: TrafficQuery): Promise<readonly TrafficRow[]> {
  const range = toRange(query)
  const callers =
    query.by === 'key' && query.key === undefined ? await busiest(queries, range, query.model) : undefined
  if (callers?.length === 0) return []
  const group = query.by === 'key' ? 'caller' : query.by === 'model' ? 'model' : undefined
  const isTotal = query.key === undefined && query.by !== 'key'
  const conditions: readonly { readonly sql: string; readonly values: readonly SqlValue[] }[] = [
    { sql: 'width_ms = ? AND is_total = ?', values: [range.width, isTotal ? 1 : 0] },
    { sql: 'start >= ? AND start < ?', values: [range.from, range.to] },
    ...(query.key === undefined ? [] : [{ sql: 'caller = ?', values: [toStorableId(query.key)] }]),
    ...(query.model === undefined ? [] : [{ sql: 'model = ?', values: [toStorableId(query.model)] }]),
    ...(callers ? [{ sql: `caller IN (${callers.map(() => '?').join(', ')})`, values: callers }] : []),
  ]
  const where = conditions.map(({ sql }) => sql).join(' AND ')
  const values = conditions.flatMap(({ values }) => values)
  const by = group ? `start, ${group}` : 'start'
  const columns = group ? `start, ${group} AS group_id` : `start, '' AS group_id`
  const [sums, times] = await Promise.all([
    queries.query<StoredTraffic>(
      `SELECT ${columns}, sum(calls) AS calls, sum(errors) AS errors, sum(input_tokens) AS input,
         sum(cached_input_tokens) AS cached_input, sum(output_tokens) AS output, sum(nano_usd) AS nano_usd
       FROM modelmount_traffic WHERE ${where} GROUP BY ${by} ORDER BY ${by}`,
      values,
      { isSlow: true },
    ),
    queries.query<StoredTimes>(
      `SELECT ${columns}, measure, bucket, sum(calls) AS calls
       FROM modelmount_traffic_times WHERE ${where} GROUP BY ${by}, measure, bucket`,
      values,
      { isSlow: true },
    ),
  ])
  const timesByRow = groupBy(times, rowKey)
  return sums.map((row) => {
    const own = timesByRow.get(rowKey(row)) ?? []
    const percentiles = (measure: StoredTimes['measure']): Percentiles | undefined =>
      percentilesOf(
        new Map(
          own
            .filter((one) => one.measure === measure)
            .map(({ bucket, calls }) => [Number(bucket), Number(calls)]),
        ),
      )
    return {
      at: new Date(row.start),
      ...(group && { group: row.group_id }),
      calls: Number(row.calls),
      errors: Number(row.errors),
      inputTokens: Number(row.input),
      cachedInputTokens: Number(row.cached_input),
      outputTokens: Number(row.output),
      nanoUsd: BigInt(row.nano_usd),
      firstTokenMs: percentiles('first_token'),
      durationMs: percentiles('duration'),
    }
  })
}

interface TrafficRange {
  readonly width: number
  readonly from: number
  readonly to: number
}

function toRange({ interval = 'hour', from, to = new Date() }: TrafficQuery): TrafficRange {
  const width = interval === 'hour' ? hourMs : dayMs
  const first = from?.getTime() ?? to.getTime() - 23 * width
  const begin = first - (first % width)
  if (to.getTime() - begin > maxIntervals * width)
    throw invalidRequest(`from: Expected at most ${maxIntervals} intervals up to \`to\`.`, { param: 'from' })
  return { width, from: begin, to: to.getTime() }
}

/** The callers with most calls, of one model if it is given. */
async function busiest(
  queries: Queries,
  { width, from, to }: TrafficRange,
  model: string | undefined,
): Promise<readonly string[]> {
  const intervals = Math.ceil((to - from) / width)
  const groups = Math.max(1, Math.min(maxGroups, Math.floor(maxRowsByKey / intervals)))
  const rows = await queries.query<{ readonly caller: string }>(
    `SELECT caller, sum(calls) AS calls FROM modelmount_traffic
     WHERE width_ms = ? AND is_total = 0 AND start >= ? AND start < ? ${model === undefined ? '' : 'AND model = ?'}
     GROUP BY caller ORDER BY sum(calls) DESC, caller LIMIT ?`,
    [width, from, to, ...(model === undefined ? [] : [toStorableId(model)]), groups],
    { isSlow: true },
  )
  return rows.map(({ caller }) => caller)
}

const rowKey = ({ start, group_id }: { readonly start: number; readonly group_id: string }): string =>
  `${start} ${group_id}`

interface StoredTraffic {
  readonly start: number
  readonly group_id: string
  readonly calls: number
  readonly errors: number
  readonly input: number
  readonly cached_input: number
  readonly output: number
  readonly nano_usd: number | bigint
}

interface StoredTimes {
  readonly start: number
  readonly group_id: string
  readonly measure: 'duration' | 'first_token'
  readonly bucket: number
  readonly calls: number
}
