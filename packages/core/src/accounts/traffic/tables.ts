/** Tables of calls over time, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../../storage/migrations.ts'

export const trafficTables: readonly Migration[] = [
  [
    // Sums of the calls that ended in an interval: `width_ms` is an hour or a day, `start` its beginning. `is_total` is 1
    // in the sums of all callers, whose `caller` is empty. An empty `caller` otherwise is the app itself, and an empty
    // `model` stands for models that do not exist.
    `CREATE TABLE modelmount_traffic (
      width_ms BIGINT NOT NULL,
      is_total INTEGER NOT NULL,
      start BIGINT NOT NULL,
      caller TEXT NOT NULL,
      model TEXT NOT NULL,
      tenant TEXT,
      calls BIGINT NOT NULL,
      errors BIGINT NOT NULL,
      input_tokens BIGINT NOT NULL,
      cached_input_tokens BIGINT NOT NULL,
      output_tokens BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      PRIMARY KEY (width_ms, is_total, start, caller, model)
    )`,
    'CREATE INDEX modelmount_traffic_caller ON modelmount_traffic (width_ms, is_total, caller, start)',
    'CREATE INDEX modelmount_traffic_tenant ON modelmount_traffic ((COALESCE(tenant, caller)))',
    // How many of these calls took how long. `measure` is `duration` or `first_token`, and `bucket` as in `buckets.ts`.
    `CREATE TABLE modelmount_traffic_times (
      width_ms BIGINT NOT NULL,
      is_total INTEGER NOT NULL,
      start BIGINT NOT NULL,
      caller TEXT NOT NULL,
      model TEXT NOT NULL,
      measure TEXT NOT NULL,
      bucket BIGINT NOT NULL,
      calls BIGINT NOT NULL,
      PRIMARY KEY (width_ms, is_total, start, caller, model, measure, bucket)
    )`,
    'CREATE INDEX modelmount_traffic_times_caller ON modelmount_traffic_times (width_ms, is_total, caller, start)',
  ],
]
