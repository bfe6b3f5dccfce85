/** Writes the rows of the ledger: one row per call, and one row of sums per day, caller and model. */

import type { Queries } from '../../storage/database.ts'
import { dayOf } from './periods.ts'
import type { TokensByKind } from './pricing.ts'
import type { CallRow } from './report.ts'

export interface NewCall
  extends Pick<CallRow, 'id' | 'tokens' | 'undeliveredTokens' | 'nanoUsd' | 'isPriced' | 'status'> {
  /** Start of the call, in milliseconds since 1970. */
  readonly at: number
  /** `caller`, `tenant` and `model` are storable ids. */
  readonly caller: string
  readonly tenant: string
  readonly keyName: string | null
  readonly model: string
  readonly dialect: string | null
  readonly durationMs: number
}

/**
 * Writes the row of a call and adds the call to the sums. If the row exists already, returns false and
 * changes nothing: an earlier write succeeded, but its response was lost.
 */
export async function writeCall({ query }: Queries, call: NewCall): Promise<boolean> {
  const { id, at, caller, tenant, model, undeliveredTokens, nanoUsd, isPriced } = call
  const name = call.keyName
  const kinds = toTokenColumns(call.tokens)
  const written = await query(
    `INSERT INTO modelmount_calls (id, at, caller, tenant, key_name, model, dialect,
       input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens,
       nano_usd, priced, status, duration_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [
      ...[id, at, caller, tenant, name, model, call.dialect],
      ...[...kinds, undeliveredTokens],
      ...[nanoUsd, isPriced ? 1 : 0, call.status, call.durationMs],
    ],
  )
  if (written.length === 0) return false
  await query(
    `INSERT INTO modelmount_usage_days (day, caller, tenant, model, key_name, calls,
       input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens,
       nano_usd, unpriced_calls)
     VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (day, caller, model) DO UPDATE SET key_name = excluded.key_name, tenant = excluded.tenant, ${summedColumns.map((column) => `${column} = modelmount_usage_days.${column} + excluded.${column}`).join(', ')}`,
    [dayOf(at), caller, tenant, model, name, ...kinds, undeliveredTokens, nanoUsd, isPriced ? 0 : 1],
  )
  return true
}

/**
 * Deletes a row that was written from a note, and subtracts it from the sums. Returns its cost in nano-dollars.
 * Undefined if there is no such row.
 */
export async function takeBackCall({ query }: Queries, id: string): Promise<number | undefined> {
  const [row] = await query<KilledRow>(
    `DELETE FROM modelmount_calls WHERE id = ? AND status = 'killed' RETURNING at, caller, model, priced,
       input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens, nano_usd`,
    [id],
  )
  if (!row) return undefined
  const { at, caller, model, priced, ...counts } = row
  const sums = { ...counts, calls: 1, unpriced_calls: 1 - priced }
  await query(
    `UPDATE modelmount_usage_days SET ${summedColumns.map((column) => `${column} = ${column} - ?`).join(', ')}
     WHERE day = ? AND caller = ? AND model = ?`,
    [...summedColumns.map((column) => sums[column]), dayOf(at), caller, model],
  )
  return row.nano_usd
}

type KilledRow = {
  readonly at: number
  readonly caller: string
  readonly model: string
  readonly priced: number
} & {
  readonly [Column in Exclude<SummedColumn, 'calls' | 'unpriced_calls'>]: number
}

const toTokenColumns = ({ input, cachedInput, cacheWrite, output }: TokensByKind) => [
  input,
  cachedInput,
  cacheWrite,
  output,
]

export const summedColumns = [
  'calls',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'undelivered_tokens',
  'nano_usd',
  'unpriced_calls',
] as const

type SummedColumn = (typeof summedColumns)[number]
