/** Tables of batches and files, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../storage/migrations.ts'

export const batchTables: readonly Migration[] = [
  [
    // A lease for each process that writes or runs items. What an expired worker holds is free again.
    `CREATE TABLE modelmount_batch_workers (
      id TEXT NOT NULL PRIMARY KEY,
      expires_at BIGINT NOT NULL
    )`,
    // `caller` is a `Caller` as JSON, or `null` for the app itself. `worker` is the process that writes the items of a
    // batch that is hidden or validated. `bytes` counts the stored items, `output_bytes` and `error_bytes` the lines of
    // the result files.
    `CREATE TABLE modelmount_batches (
      id TEXT NOT NULL PRIMARY KEY,
      api TEXT NOT NULL,
      endpoint TEXT NOT NULL,
      tenant TEXT NOT NULL,
      caller TEXT NOT NULL,
      status TEXT NOT NULL,
      worker TEXT,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      started_at BIGINT,
      cancel_at BIGINT,
      ended_at BIGINT,
      archived_at BIGINT,
      total BIGINT NOT NULL DEFAULT 0,
      remaining BIGINT NOT NULL DEFAULT 0,
      succeeded BIGINT NOT NULL DEFAULT 0,
      errored BIGINT NOT NULL DEFAULT 0,
      canceled BIGINT NOT NULL DEFAULT 0,
      expired BIGINT NOT NULL DEFAULT 0,
      bytes BIGINT NOT NULL DEFAULT 0,
      output_bytes BIGINT NOT NULL DEFAULT 0,
      error_bytes BIGINT NOT NULL DEFAULT 0,
      input_file TEXT,
      output_file TEXT,
      error_file TEXT,
      metadata TEXT,
      problems TEXT
    )`,
    'CREATE INDEX modelmount_batches_tenant ON modelmount_batches (tenant, api, created_at, id)',
    'CREATE INDEX modelmount_batches_status ON modelmount_batches (status)',
    // `custom_id` is a JSON string, because PostgreSQL cannot store NUL. `params` is null when the item has ended.
    // `result` is the line of the item in the results, and null for an item that did not run.
    `CREATE TABLE modelmount_batch_items (
      batch TEXT NOT NULL,
      number BIGINT NOT NULL,
      custom_id TEXT NOT NULL,
      params TEXT,
      model TEXT NOT NULL,
      prefix TEXT NOT NULL,
      status TEXT NOT NULL,
      crashes INTEGER NOT NULL DEFAULT 0,
      not_before BIGINT NOT NULL DEFAULT 0,
      worker TEXT,
      result TEXT,
      PRIMARY KEY (batch, number)
    )`,
    `CREATE INDEX modelmount_batch_items_pending
     ON modelmount_batch_items (batch, model, prefix, number) WHERE status = 'pending'`,
    `CREATE INDEX modelmount_batch_items_running
     ON modelmount_batch_items (worker) WHERE status = 'running'`,
    // `batch` and `kind` are set for the result files of a batch, whose content is in its items.
    `CREATE TABLE modelmount_files (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL,
      purpose TEXT NOT NULL,
      filename TEXT NOT NULL,
      status TEXT NOT NULL,
      worker TEXT,
      bytes BIGINT NOT NULL DEFAULT 0,
      created_at BIGINT NOT NULL,
      expires_at BIGINT,
      batch TEXT,
      kind TEXT
    )`,
    'CREATE INDEX modelmount_files_tenant ON modelmount_files (tenant, created_at, id)',
    'CREATE INDEX modelmount_files_status ON modelmount_files (status)',
    `CREATE TABLE modelmount_file_chunks (
      file TEXT NOT NULL,
      number BIGINT NOT NULL,
      data BYTEA NOT NULL,
      PRIMARY KEY (file, number)
    )`,
  ],
  // A JSON list, which is null until the batch is complete, and in rows that an older version has written. The indexes are
  // for lists of the batches of all tenants.
  [
    'ALTER TABLE modelmount_batches ADD COLUMN models TEXT',
    'CREATE INDEX modelmount_batches_created_at ON modelmount_batches (created_at, id)',
    'CREATE INDEX modelmount_batches_status_created_at ON modelmount_batches (status, created_at, id)',
    'DROP INDEX modelmount_batches_status',
  ],
]
