/** Pages of long lists: their bounds, and the errors for invalid ones. */
import { invalidRequest, type LlmError } from '../errors.ts'

/** One page of a list. A page with fewer entries than `limit` is the last one. */
export interface PageQuery {
  /** Maximum number of entries, from 1 to 1,000. @default 1,000 */
  readonly limit?: number | undefined
  /** The last entry of the previous page. @default the first page */
  readonly after?: string | undefined
}

export const maxPageSize = 1_000

/** Throws an `invalid_request` that names the field. */
export function checkLimit(limit: number = maxPageSize): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxPageSize) return limit
  throw invalidRequest(`limit: Expected a whole number from 1 to ${maxPageSize}, got ${limit}.`, {
    param: 'limit',
  })
}

/** The error for a page after an entry that does not exist, or no longer exists. */
export const unknownEntry = (entry: string): LlmError =>
  invalidRequest(`after: Expected the id of ${entry} of the previous page.`, { param: 'after' })
