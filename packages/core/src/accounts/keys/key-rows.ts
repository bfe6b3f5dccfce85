/** Rows of keys in the database. */
import { LlmError } from '../../errors.ts'
import type { Queries } from '../../storage/database.ts'
import { type NanoUsdLimit, toNanoUsdLimit, toSpendingLimit } from '../spending-limit.ts'
import type { Grant } from './settings.ts'

export interface KeyRow {
  readonly id: string
  readonly name: string
  /** Null if the key is its own tenant. */
  readonly tenant: string | null
  readonly hint: string
  /** A `StoredGrant` as JSON. */
  readonly granted: string
  readonly created_at: number
  readonly expires_at: number | null
  readonly revoked_at: number | null
  readonly last_used_at: number | null
  /** When the last one of the previous secrets expires. Also in the past. */
  readonly previous_expires_at: number | null
  /** Time of the query, by the database's clock. */
  readonly now: number
}

export const keyColumns = (clock: string): string =>
  `id, name, tenant, hint, granted, created_at, expires_at, revoked_at, last_used_at, ${clock} AS now,
   (SELECT MAX(s.expires_at) FROM modelmount_key_secrets s WHERE s.key_id = modelmount_keys.id) AS previous_expires_at`

/**
 * Locks the key until the transaction ends. Throws an `LlmError`: `not_found` for an unknown id, `conflict`
 * for a revoked key.
 */
export async function lockKey({ query }: Queries, clock: string, id: string): Promise<KeyRow> {
  const [row] = await query<KeyRow>(
    `UPDATE modelmount_keys SET name = name WHERE id = ? RETURNING ${keyColumns(clock)}`,
    [id],
  )
  if (!row) throw keyNotFound()
  if (row.revoked_at !== null) throw new LlmError('conflict', 'This key is revoked. Create another key.')
  return row
}

export async function saveKey(
  { query }: Queries,
  clock: string,
  { id, name, tenant, expires_at }: Pick<KeyRow, 'id' | 'name' | 'tenant' | 'expires_at'>,
  grant: Grant,
): Promise<KeyRow> {
  const [row] = await query<KeyRow>(
    `UPDATE modelmount_keys SET name = ?, tenant = ?, expires_at = ?, granted = ? WHERE id = ? RETURNING ${keyColumns(clock)}`,
    [name, tenant, expires_at, serializeGrant(grant), id],
  )
  return row ?? throwRowMissing()
}

interface StoredGrant extends Omit<Grant, 'spendingLimit'> {
  readonly spendingLimit?: NanoUsdLimit
  /** Former name of `spendingLimit`, in rows that an older version has written. */
  readonly spendLimit?: { readonly nanoUsd: number; readonly per: NanoUsdLimit['period'] }
}

/**
 * Parses the column `granted`. Also reads the former name `spendLimit`, so that old keys keep their limit.
 */
export function parseGrant({ granted }: Pick<KeyRow, 'granted'>): Grant {
  const { spendingLimit, spendLimit, ...grant } = JSON.parse(granted) as StoredGrant
  const limit = spendingLimit ?? (spendLimit && { nanoUsd: spendLimit.nanoUsd, period: spendLimit.per })
  return { ...grant, ...(limit && { spendingLimit: toSpendingLimit(limit) }) }
}

export function serializeGrant({ spendingLimit, ...grant }: Grant): string {
  const stored: StoredGrant = {
    ...grant,
    ...(spendingLimit && { spendingLimit: toNanoUsdLimit(spendingLimit) }),
  }
  return JSON.stringify(stored)
}

/**
 * Replaces an invalid id by an empty string, because PostgreSQL rejects some strings, such as strings with
 * NUL.
 */
export const toSafeId = (id: string): string => (/^\w{1,100}$/.test(id) ? id : '')

export const keyNotFound = (): LlmError => new LlmError('not_found', 'Key not found.')

function throwRowMissing(): never {
  throw new Error('A locked row of modelmount_keys is missing.')
}
