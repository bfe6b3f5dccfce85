/** Tables of deletions, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../../storage/migrations.ts'

export const tenantTables: readonly Migration[] = [
  [
    // `tenant` is a JSON string, because PostgreSQL cannot store NUL. `id` is short, so that it can be a key.
    // `usage_deletion` is a `UsageDeletion`. `finished_at` is null until the stored data is deleted.
    `CREATE TABLE modelmount_tenant_deletions (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL,
      usage_deletion TEXT NOT NULL,
      requested_at BIGINT NOT NULL,
      finished_at BIGINT
    )`,
  ],
]
