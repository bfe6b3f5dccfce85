/** The table of the audit log, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../../storage/migrations.ts'

export const auditTables: readonly Migration[] = [
  [
    // `caller_tenant` and `tenant` find the entries of a deleted tenant: changes by it, and changes of its data. `changes`
    // is a JSON object. `error` is the code of an `LlmError`.
    `CREATE TABLE modelmount_audit (
      id TEXT NOT NULL PRIMARY KEY,
      at BIGINT NOT NULL,
      caller TEXT NOT NULL,
      caller_tenant TEXT NOT NULL,
      key_id TEXT,
      key_name TEXT,
      action TEXT NOT NULL,
      target TEXT,
      tenant TEXT,
      changes TEXT NOT NULL,
      outcome TEXT NOT NULL,
      error TEXT
    )`,
    // One for each filter of the list, in its order, and one for two filters that each have many entries.
    'CREATE INDEX modelmount_audit_at ON modelmount_audit (at, id)',
    'CREATE INDEX modelmount_audit_caller ON modelmount_audit (caller, at, id)',
    'CREATE INDEX modelmount_audit_caller_action ON modelmount_audit (caller, action, at, id)',
    'CREATE INDEX modelmount_audit_action ON modelmount_audit (action, at, id)',
    'CREATE INDEX modelmount_audit_target ON modelmount_audit (target, at, id)',
    'CREATE INDEX modelmount_audit_tenant ON modelmount_audit (tenant)',
    'CREATE INDEX modelmount_audit_caller_tenant ON modelmount_audit (caller_tenant)',
  ],
]
