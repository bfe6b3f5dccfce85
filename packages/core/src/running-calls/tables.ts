/** Tables of running calls, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../storage/migrations.ts'

export const runningCallTables: readonly Migration[] = [
  [
    // The calls of each app process that runs calls, as JSON. A process that has not written for a while has ended.
    `CREATE TABLE modelmount_running_calls (
      process TEXT NOT NULL PRIMARY KEY,
      host TEXT NOT NULL,
      pid BIGINT NOT NULL,
      calls TEXT NOT NULL,
      written_at BIGINT NOT NULL
    )`,
    // Calls that another process was asked to end.
    `CREATE TABLE modelmount_cancel_requests (
      call_id TEXT NOT NULL PRIMARY KEY,
      process TEXT NOT NULL,
      requested_at BIGINT NOT NULL
    )`,
    'CREATE INDEX modelmount_cancel_requests_process ON modelmount_cancel_requests (process)',
  ],
]
