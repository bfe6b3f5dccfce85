/** Tables of keys, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../../storage/migrations.ts'

export const keyTables: readonly Migration[] = [
  [
    `CREATE TABLE modelmount_keys (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      hint TEXT NOT NULL,
      granted TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT,
      revoked_at BIGINT,
      last_used_at BIGINT
    )`,
    // A rotated key has several secrets until their grace periods end.
    `CREATE TABLE modelmount_key_secrets (
      public_id TEXT PRIMARY KEY,
      key_id TEXT NOT NULL REFERENCES modelmount_keys (id),
      hash TEXT NOT NULL,
      expires_at BIGINT
    )`,
    'CREATE INDEX modelmount_key_secrets_key_id ON modelmount_key_secrets (key_id)',
  ],
  [
    `CREATE TABLE modelmount_limit_requests (
      id TEXT PRIMARY KEY,
      key_id TEXT NOT NULL REFERENCES modelmount_keys (id),
      limits TEXT NOT NULL,
      reason TEXT NOT NULL,
      status TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      decided_at BIGINT
    )`,
    // At most one pending request per key, so that one key cannot flood the list.
    `CREATE UNIQUE INDEX modelmount_limit_requests_pending
     ON modelmount_limit_requests (key_id) WHERE status = 'pending'`,
  ],
  // Null if the key is its own tenant.
  ['ALTER TABLE modelmount_keys ADD COLUMN tenant TEXT'],
  // The orders of lists, whose pages would otherwise sort all rows, and the keys of one tenant.
  [
    'CREATE INDEX modelmount_keys_created_at ON modelmount_keys (created_at DESC, id)',
    'CREATE INDEX modelmount_limit_requests_created_at ON modelmount_limit_requests (created_at, id)',
    'CREATE INDEX modelmount_keys_tenant ON modelmount_keys ((COALESCE(tenant, id)))',
  ],
  // Sessions of browsers. `key_id` is null for an operator, who has logged in without a key.
  [
    `CREATE TABLE modelmount_sessions (
      hash TEXT PRIMARY KEY,
      key_id TEXT,
      expires_at BIGINT NOT NULL
    )`,
    'CREATE INDEX modelmount_sessions_key_id ON modelmount_sessions (key_id)',
  ],
  // What the person who decides a limit request writes, and the id of this caller.
  [
    'ALTER TABLE modelmount_limit_requests ADD COLUMN note TEXT',
    'ALTER TABLE modelmount_limit_requests ADD COLUMN decided_by TEXT',
  ],
]
