/** Tables of fleets, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../../storage/migrations.ts'

export const fleetTables: readonly Migration[] = [
  [
    `CREATE TABLE modelmount_replicas (
      fleet TEXT NOT NULL,
      url TEXT NOT NULL,
      added_at BIGINT NOT NULL,
      PRIMARY KEY (fleet, url)
    )`,
  ],
]
