/** Tables of usage, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../../storage/migrations.ts'

export const usageTables: readonly Migration[] = [
  [
    `CREATE TABLE modelmount_calls (
      id TEXT NOT NULL PRIMARY KEY,
      at BIGINT NOT NULL,
      caller TEXT NOT NULL,
      key_name TEXT,
      model TEXT NOT NULL,
      dialect TEXT,
      input_tokens BIGINT NOT NULL,
      cached_input_tokens BIGINT NOT NULL,
      cache_write_tokens BIGINT NOT NULL,
      output_tokens BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      priced INTEGER NOT NULL,
      status TEXT NOT NULL,
      duration_ms BIGINT NOT NULL
    )`,
    'CREATE INDEX modelmount_calls_at ON modelmount_calls (at)',
    'CREATE INDEX modelmount_calls_caller ON modelmount_calls (caller, at)',
    `CREATE TABLE modelmount_usage_days (
      day TEXT NOT NULL,
      caller TEXT NOT NULL,
      model TEXT NOT NULL,
      key_name TEXT,
      calls BIGINT NOT NULL,
      input_tokens BIGINT NOT NULL,
      cached_input_tokens BIGINT NOT NULL,
      cache_write_tokens BIGINT NOT NULL,
      output_tokens BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      unpriced_calls BIGINT NOT NULL,
      PRIMARY KEY (day, caller, model)
    )`,
    // Contains sums of the last day and the last month with spending. `exhausted` is the start of the last
    // period whose limit was exhausted.
    `CREATE TABLE modelmount_spending (
      caller TEXT NOT NULL PRIMARY KEY,
      day TEXT NOT NULL,
      day_spent BIGINT NOT NULL,
      month TEXT NOT NULL,
      month_spent BIGINT NOT NULL,
      lifetime_spent BIGINT NOT NULL,
      exhausted BIGINT NOT NULL
    )`,
    `CREATE TABLE modelmount_funds (
      id TEXT NOT NULL PRIMARY KEY,
      caller TEXT NOT NULL,
      at BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      expires_at BIGINT NOT NULL
    )`,
    'CREATE INDEX modelmount_funds_caller ON modelmount_funds (caller)',
  ],
  // Amount of the limit when it was exhausted. If the limit has been raised since, it counts as not
  // exhausted.
  ['ALTER TABLE modelmount_spending ADD COLUMN exhausted_limit BIGINT NOT NULL DEFAULT 0'],
  // Output tokens that were generated, but that the reader did not get. `output_tokens` does not include them.
  [
    'ALTER TABLE modelmount_calls ADD COLUMN undelivered_tokens BIGINT NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN undelivered_tokens BIGINT NOT NULL DEFAULT 0',
  ],
  // Null in rows that an older version has written. There, each caller was its own tenant in reports.
  [
    'ALTER TABLE modelmount_calls ADD COLUMN tenant TEXT',
    'ALTER TABLE modelmount_usage_days ADD COLUMN tenant TEXT',
  ],
  // Pages of reports, and the calls of one tenant. From now on, `day` is a month, such as `2025-11`, in the sums of days that
  // are more than a year old.
  [
    'CREATE INDEX modelmount_usage_days_caller ON modelmount_usage_days (caller, day)',
    'CREATE INDEX modelmount_usage_days_tenant ON modelmount_usage_days ((COALESCE(tenant, caller)), day)',
    'CREATE INDEX modelmount_calls_tenant ON modelmount_calls ((COALESCE(tenant, caller)), at)',
    // One row, which `retention-clock.ts` explains.
    `CREATE TABLE modelmount_retention_clock (
      id INTEGER NOT NULL PRIMARY KEY,
      seen_at BIGINT NOT NULL,
      steady_since BIGINT NOT NULL,
      counted_to BIGINT NOT NULL
    )`,
    `INSERT INTO modelmount_retention_clock (id, seen_at, steady_since, counted_to)
     SELECT 1, max(at), 0, max(at) FROM modelmount_calls HAVING count(*) > 0`,
    // The note says what a running call has handed out, as JSON. It is null before the reader has got anything. No
    // index contains `expires_at`, because each renewal changes it, and the table has only rows of running calls.
    'ALTER TABLE modelmount_funds ADD COLUMN tenant TEXT',
    'ALTER TABLE modelmount_funds ADD COLUMN note TEXT',
  ],
  // Calls of batches. The sums of a day include them, and separate columns hold their part.
  [
    'ALTER TABLE modelmount_calls ADD COLUMN batch INTEGER NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN batch_calls BIGINT NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN batch_input_tokens BIGINT NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN batch_cached_input_tokens BIGINT NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN batch_cache_write_tokens BIGINT NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN batch_output_tokens BIGINT NOT NULL DEFAULT 0',
    'ALTER TABLE modelmount_usage_days ADD COLUMN batch_nano_usd BIGINT NOT NULL DEFAULT 0',
  ],
  // Reports read the parts of batches by themselves. Most rows have none, and are not in this index.
  ['CREATE INDEX modelmount_usage_days_batches ON modelmount_usage_days (day) WHERE batch_calls > 0'],
]
