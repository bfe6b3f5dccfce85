/** Rows of `modelmount_usage_days`: the sums of a caller's calls with one model in a day or a month. */
import type { Queries, SqlValue } from '../../storage/database.ts'
import { dayOf, monthOf } from './periods.ts'

export const summedColumns = [
  'calls',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'undelivered_tokens',
  'nano_usd',
  'unpriced_calls',
  // The part of batches, which the columns above include.
  'batch_calls',
  'batch_input_tokens',
  'batch_cached_input_tokens',
  'batch_cache_write_tokens',
  'batch_output_tokens',
  'batch_nano_usd',
] as const

export type SumsRow = Readonly<Record<'day' | 'caller' | 'model', string>> &
  Readonly<Record<'tenant' | 'key_name', string | null>> &
  Readonly<Record<string, Exclude<SqlValue, Uint8Array>>>

export const sumsColumns = ['day', 'caller', 'model', 'tenant', 'key_name', ...summedColumns]

/** Adds sums to those of the same day, caller and model. The tenant and the name of the last row remain. */
export async function addSums({ query }: Queries, rows: readonly SumsRow[]): Promise<void> {
  const sums = mergeByKey(rows)
  if (sums.length === 0) return
  await query(
    `INSERT INTO modelmount_usage_days (${sumsColumns.join(', ')})
     VALUES ${sums.map(() => `(${sumsColumns.map(() => '?').join(', ')})`).join(', ')}
     ON CONFLICT (day, caller, model) DO UPDATE SET tenant = excluded.tenant, key_name = excluded.key_name,
       ${summedColumns.map((column) => `${column} = modelmount_usage_days.${column} + excluded.${column}`).join(', ')}`,
    sums.flatMap((sum) => sumsColumns.map((column) => sum[column] ?? null)),
  )
}

/** A row of `modelmount_calls`, as far as the sums count it. */
export type CountedCall = Readonly<Record<'at' | 'priced' | 'batch', number>> &
  Readonly<Record<'caller' | 'model', string>> &
  Readonly<Record<'tenant' | 'key_name', string | null>> &
  Readonly<Record<(typeof countColumns)[number], number>>

const countColumns = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'undelivered_tokens',
  'nano_usd',
] as const

export const countedColumns = [
  'at',
  'caller',
  'model',
  'tenant',
  'key_name',
  'priced',
  'batch',
  ...countColumns,
] as const

/** The sums of one call. */
export const toSums = ({ at, priced, batch, ...call }: CountedCall): SumsRow => ({
  ...call,
  day: dayOf(at),
  calls: 1,
  unpriced_calls: 1 - priced,
  batch_calls: batch,
  batch_input_tokens: batch * call.input_tokens,
  batch_cached_input_tokens: batch * call.cached_input_tokens,
  batch_cache_write_tokens: batch * call.cache_write_tokens,
  batch_output_tokens: batch * call.output_tokens,
  batch_nano_usd: batch * call.nano_usd,
})

/** Subtracts sums of days from those of the same caller and model, in the day, or in its month after a year. */
export async function subtractSums({ query }: Queries, rows: readonly SumsRow[]): Promise<void> {
  const changes = summedColumns.map((column) => `${column} = ${column} - ?`).join(', ')
  for (const sum of mergeByKey(rows))
    for (const day of [sum.day, monthOf(Date.parse(sum.day))]) {
      const changed = await query(
        `UPDATE modelmount_usage_days SET ${changes} WHERE day = ? AND caller = ? AND model = ? RETURNING day`,
        [...summedColumns.map((column) => sum[column] ?? 0), day, sum.caller, sum.model],
      )
      if (changed.length > 0) break
    }
}

/** Returns the rows in a fixed order, so that two transactions do not lock each other's rows. */
function mergeByKey(rows: readonly SumsRow[]): readonly SumsRow[] {
  const sums = new Map<string, SumsRow>()
  for (const row of rows) {
    const key = JSON.stringify([row.day, row.caller, row.model])
    const before = sums.get(key)
    const added = summedColumns.map((column) => [
      column,
      BigInt(before?.[column] ?? 0) + BigInt(row[column] ?? 0),
    ])
    sums.set(key, { ...row, ...Object.fromEntries(added) })
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
}
