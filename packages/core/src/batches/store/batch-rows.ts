/** Rows of batches in the database. */

import type { Caller } from '../../accounts/auth/caller.ts'
import type { Database } from '../../storage/database.ts'
import type { ActiveBatch, Batch, BatchFormat, BatchOwner, BatchProblem, BatchStatus } from '../batch.ts'
import type { BatchEvent } from '../batch-event.ts'

/** A `hidden` batch is being written or deleted. */
export type StoredStatus = BatchStatus | 'hidden'

export interface BatchRow {
  readonly id: string
  readonly api: BatchFormat
  readonly endpoint: string
  readonly tenant: string
  readonly caller: string
  readonly status: StoredStatus
  readonly created_at: number
  readonly expires_at: number
  readonly started_at: number | null
  readonly cancel_at: number | null
  readonly ended_at: number | null
  readonly archived_at: number | null
  readonly total: number
  readonly remaining: number
  readonly succeeded: number
  readonly errored: number
  readonly canceled: number
  readonly expired: number
  readonly output_bytes: number
  readonly error_bytes: number
  readonly input_file: string | null
  readonly output_file: string | null
  readonly error_file: string | null
  readonly metadata: string | null
  readonly problems: string | null
  readonly models: string | null
}

export const batchColumns = `id, api, endpoint, tenant, caller, status, created_at, expires_at, started_at, cancel_at, ended_at,
  archived_at, total, remaining, succeeded, errored, canceled, expired, output_bytes, error_bytes, input_file, output_file,
  error_file, metadata, problems, models`

/** @param isForApp whether the app reads the batch, and not one of its callers */
export function toBatch(row: BatchRow, isForApp: boolean): Batch {
  const hasFiles = row.ended_at !== null && row.archived_at === null
  return {
    id: row.id,
    format: row.api,
    endpoint: row.endpoint,
    status: row.status as BatchStatus,
    counts: {
      processing: row.remaining,
      succeeded: row.succeeded,
      errored: row.errored,
      canceled: row.canceled,
      expired: row.expired,
    },
    createdAt: new Date(row.created_at),
    expiresAt: new Date(row.expires_at),
    ...(row.started_at !== null && { startedAt: new Date(row.started_at) }),
    ...(row.cancel_at !== null && { cancelRequestedAt: new Date(row.cancel_at) }),
    ...(row.ended_at !== null && { endedAt: new Date(row.ended_at) }),
    ...(row.archived_at !== null && { archivedAt: new Date(row.archived_at) }),
    ...(row.metadata !== null && { metadata: JSON.parse(row.metadata) as Record<string, string> }),
    ...(row.input_file !== null && { inputFileId: row.input_file }),
    ...(hasFiles && row.output_file !== null && row.output_bytes > 0 && { outputFileId: row.output_file }),
    ...(hasFiles && row.error_file !== null && row.error_bytes > 0 && { errorFileId: row.error_file }),
    ...(row.problems !== null && { problems: JSON.parse(row.problems) as BatchProblem[] }),
    ...(row.models !== null && { models: JSON.parse(row.models) as string[] }),
    ...(isForApp && { owner: toOwner(row) }),
  }
}

function toOwner({ tenant, caller: json }: Pick<BatchRow, 'tenant' | 'caller'>): BatchOwner {
  const caller = JSON.parse(json) as Caller | null
  return { tenant, ...(caller && { caller: caller.id, ...(caller.key && { key: caller.key }) }) }
}

export const toActiveBatch = ({
  id,
  api,
  endpoint,
  tenant,
  caller,
}: Pick<BatchRow, 'id' | 'api' | 'endpoint' | 'tenant' | 'caller'>): ActiveBatch => ({
  ...{ id, format: api, endpoint, tenant },
  caller: (JSON.parse(caller) as Caller | null) ?? undefined,
})

/** The database of batches, and its clock. */
export interface BatchDatabase {
  readonly database: Database
  /** Returns the SQL expression of the current time in milliseconds. */
  readonly clock: () => string
}

/** What the stores of batches and of items need. */
export interface BatchStoreParts extends BatchDatabase {
  /** Called after the transaction. */
  readonly onEvent: (event: BatchEvent) => void
}

export async function readClock({ database, clock }: BatchDatabase): Promise<number> {
  const [row] = await database.query<{ now: number }>(`SELECT ${clock()} AS now`)
  return (row as { now: number }).now
}

/** Replaces an id that no batch or file can have, because PostgreSQL rejects some strings. */
export const toKnownId = (id: string): string => (/^[\w-]{1,100}$/.test(id) ? id : '')
