/** Which keys a list contains, as SQL. */
import type { SqlValue } from '../../storage/database.ts'
import type { PageQuery } from '../page.ts'
import type { KeyRow } from './key-rows.ts'

/** `after` is the id of the last key of the previous page. */
export interface KeysQuery extends PageQuery {
  /** Part of the name, the hint or the id of a key. Upper and lower case of ASCII letters count as equal. */
  readonly search?: string | undefined
  /** @default any status */
  readonly status?: KeyStatus | undefined
}

export type KeyStatus = 'active' | 'expired' | 'revoked'

/** @param last the last key of the previous page */
export function toWhere(
  { last, search, status }: Pick<KeysQuery, 'search' | 'status'> & { readonly last: KeyRow | undefined },
  clock: string,
): { readonly where: string; readonly values: readonly SqlValue[] } {
  const conditions: readonly KeyCondition[] = [
    ...(last ? [afterRow(last)] : []),
    ...(status === undefined ? [] : [{ sql: statusCondition(status, clock), values: [] }]),
    ...(search === undefined ? [] : [toSearch(search)]),
  ]
  return {
    where: conditions.length > 0 ? `WHERE ${conditions.map(({ sql }) => `(${sql})`).join(' AND ')}` : '',
    values: conditions.flatMap(({ values }) => values),
  }
}

interface KeyCondition {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

const afterRow = ({ created_at, id }: KeyRow): KeyCondition => ({
  sql: 'created_at <= ? AND (created_at < ? OR id > ?)',
  values: [created_at, created_at, id],
})

function statusCondition(status: KeyStatus, clock: string): string {
  if (status === 'revoked') return 'revoked_at IS NOT NULL'
  const isExpired = `expires_at IS NOT NULL AND expires_at <= ${clock}`
  return `revoked_at IS NULL AND ${status === 'expired' ? `(${isExpired})` : `NOT (${isExpired})`}`
}

/** Escapes a text for `LIKE … ESCAPE '\'`. Removes NUL, which PostgreSQL rejects and no name contains. */
const escapePattern = (text: string): string => text.replaceAll('\0', '').replaceAll(/[%_\\]/g, '\\$&')

function toSearch(text: string): KeyCondition {
  const pattern = `%${escapePattern(text)}%`
  const columns = ['name', 'hint', 'id'] as const
  return {
    sql: columns.map((column) => `lower(${column}) LIKE lower(?) ESCAPE '\\'`).join(' OR '),
    values: columns.map(() => pattern),
  }
}
