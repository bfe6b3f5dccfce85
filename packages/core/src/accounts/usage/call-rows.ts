/** Writes the rows of the ledger: one row per call, and one row of sums per day, caller and model. */

import { toStorableId } from '../../limits/demand.ts'
import type { Queries } from '../../storage/database.ts'
import { type Caller, tenantOf } from '../auth/caller.ts'
import { dayOf } from './periods.ts'
import type { TokensByKind } from './pricing.ts'
import type { CallRow } from './report.ts'

export interface NewCall
  extends Pick<CallRow, 'id' | 'tokens' | 'undeliveredTokens' | 'nanoUsd' | 'isPriced' | 'status'> {
  /** Start of the call, in milliseconds since 1970. */
  readonly at: number
  readonly caller: Caller
  readonly model: string
  readonly dialect: string | undefined
  readonly durationMs: number
}

/**
 * Writes the row of a call and adds the call to the sums. If the row exists already, returns false and
 * changes nothing: an earlier write succeeded, but its response was lost.
 */
export async function writeCall({ query }: Queries, call: NewCall): Promise<boolean> {
  const { id, at, undeliveredTokens, nanoUsd, isPriced } = call
  const caller = toStorableId(call.caller.id)
  const tenant = toStorableId(tenantOf(call.caller))
  const model = toStorableId(call.model)
  const name = call.caller.key?.name ?? null
  const kinds = toTokenColumns(call.tokens)
  const written = await query(
    `INSERT INTO modelmount_calls (id, at, caller, tenant, key_name, model, dialect,
       input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens,
       nano_usd, priced, status, duration_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [
      ...[id, at, caller, tenant, name, model, call.dialect ?? null],
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

const toTokenColumns = ({ input, cachedInput, cacheWrite, output }: TokensByKind) => [
  input,
  cachedInput,
  cacheWrite,
  output,
]

const summedColumns = [
  'calls',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'undelivered_tokens',
  'nano_usd',
  'unpriced_calls',
]
