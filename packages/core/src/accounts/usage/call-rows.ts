/** Writes the rows of the ledger: one row per call, and one row of sums per day, caller and model. */

import type { Queries } from '../../storage/database.ts'
import type { CallRow } from './report.ts'
import { addSums, type CountedCall, countedColumns, subtractSums, toSums } from './sums.ts'

export interface NewCall
  extends Pick<CallRow, 'id' | 'tokens' | 'undeliveredTokens' | 'nanoUsd' | 'isPriced' | 'status'> {
  /** Whether the call was an item of a batch. Absent in a note that an older version has written. */
  readonly isBatch?: boolean
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
export async function writeCall(queries: Queries, call: NewCall): Promise<boolean> {
  const { id, at, caller, tenant, keyName, model, tokens, nanoUsd } = call
  const row = {
    ...{ at, caller, tenant, key_name: keyName, model },
    priced: call.isPriced ? 1 : 0,
    batch: call.isBatch ? 1 : 0,
    input_tokens: tokens.input,
    cached_input_tokens: tokens.cachedInput,
    cache_write_tokens: tokens.cacheWrite,
    output_tokens: tokens.output,
    undelivered_tokens: call.undeliveredTokens,
    nano_usd: nanoUsd,
  }
  const values = Object.entries({
    ...row,
    ...{ id, dialect: call.dialect, status: call.status, duration_ms: call.durationMs },
  })
  const written = await queries.query(
    `INSERT INTO modelmount_calls (${values.map(([column]) => column).join(', ')})
     VALUES (${values.map(() => '?').join(', ')})
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    values.map(([, value]) => value),
  )
  if (written.length === 0) return false
  await addSums(queries, [toSums(row)])
  return true
}

/**
 * Deletes a row that was written from a note, and subtracts it from the sums. Returns its cost in nano-dollars.
 * Undefined if there is no such row.
 */
export async function takeBackCall(queries: Queries, id: string): Promise<number | undefined> {
  const [row] = await queries.query<CountedCall>(
    `DELETE FROM modelmount_calls WHERE id = ? AND status = 'killed' RETURNING ${countedColumns.join(', ')}`,
    [id],
  )
  if (!row) return undefined
  await subtractSums(queries, [toSums(row)])
  return row.nano_usd
}
