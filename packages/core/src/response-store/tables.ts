/** Tables of stored responses and conversations, as steps of `storage/migrations.ts`. Released steps must not change. */
import type { Migration } from '../storage/migrations.ts'

export const responseTables: readonly Migration[] = [
  [
    // `body` is the response object, and `input` the list of its input items, both as JSON.
    `CREATE TABLE modelmount_responses (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL,
      previous TEXT,
      conversation TEXT,
      body TEXT NOT NULL,
      input TEXT NOT NULL,
      bytes BIGINT NOT NULL,
      created_at BIGINT NOT NULL,
      used_at BIGINT NOT NULL
    )`,
    'CREATE INDEX modelmount_responses_tenant ON modelmount_responses (tenant, used_at, bytes)',
    'CREATE INDEX modelmount_responses_use ON modelmount_responses (used_at)',
    // `metadata` is JSON. `bytes` counts the items, too. `next_position` is that of the next item.
    `CREATE TABLE modelmount_conversations (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL,
      metadata TEXT NOT NULL,
      bytes BIGINT NOT NULL,
      next_position BIGINT NOT NULL DEFAULT 0,
      created_at BIGINT NOT NULL,
      used_at BIGINT NOT NULL
    )`,
    'CREATE INDEX modelmount_conversations_tenant ON modelmount_conversations (tenant, used_at, bytes)',
    'CREATE INDEX modelmount_conversations_use ON modelmount_conversations (used_at)',
    // `id` is a JSON string, because clients choose some of them, and PostgreSQL cannot store NUL.
    `CREATE TABLE modelmount_conversation_items (
      conversation TEXT NOT NULL,
      position BIGINT NOT NULL,
      id TEXT NOT NULL,
      response TEXT,
      body TEXT NOT NULL,
      bytes BIGINT NOT NULL,
      PRIMARY KEY (conversation, position)
    )`,
  ],
]
