/** Stores responses and conversations in the database of the app, for apps of several processes. */
import type { DataDeletion, DeletedCounts } from '../accounts/tenants/tenant-data.ts'
import { toStorableId } from '../limits/demand.ts'
import type { Database, Queries } from '../storage/database.ts'
import type { ResponseData } from './response-data.ts'
import {
  type ConversationItem,
  overheadBytes,
  type ResponseStore,
  type StoreBounds,
  type StoredConversation,
  type StoredResponse,
  sizeOf,
  type TenantResponses,
} from './response-store.ts'
import { trimStore } from './trim-store.ts'

export interface DatabaseStoreOptions extends StoreBounds {
  /** Called when work in the background fails, which is tried again. */
  readonly onError: (cause: unknown) => void
}

const trimEveryMs = 60_000
/** Part of a tenant's bytes that this process stores before it looks for tenants with too many. */
const trimShare = 1 / 16

export class DatabaseStore implements ResponseStore {
  readonly #database: Database
  readonly #options: DatabaseStoreOptions
  readonly #data: ResponseData
  readonly #timer: NodeJS.Timeout
  /** Bytes that this process has stored since it looked for tenants with too many. */
  #newBytes = 0
  #trimming: Promise<void> | undefined
  #isClosed = false

  constructor(database: Database, data: ResponseData, options: DatabaseStoreOptions) {
    this.#database = database
    this.#options = options
    this.#data = data
    this.#timer = setInterval(() => void this.trim(), Math.min(trimEveryMs, options.maxAgeMs)).unref()
  }

  forTenant(tenant: string): TenantResponses {
    return new TenantRows(this.#database, {
      tenant: toStorableId(tenant),
      maxAgeMs: this.#options.maxAgeMs,
      maxBytes: Math.min(this.#options.maxBytesPerTenant, this.#options.maxBytes),
      onStored: (bytes) => {
        this.#newBytes += bytes
        const isTrimDue = this.#newBytes > this.#options.maxBytesPerTenant * trimShare
        if (isTrimDue && !this.#trimming) void this.trim()
      },
    })
  }

  /** Deletes expired entries, and the least recently used ones of a store that is too large. Never rejects. */
  async trim(): Promise<void> {
    while (this.#trimming) await this.#trimming
    if (this.#isClosed) return
    this.#newBytes = 0
    this.#trimming = trimStore(this.#database, this.#options)
      .catch(this.#options.onError)
      .finally(() => {
        this.#trimming = undefined
      })
    await this.#trimming
  }

  deleteTenant(deletion: DataDeletion): Promise<DeletedCounts> {
    return this.#data.deleteTenant(deletion)
  }

  hasCallsBefore(tenant: string, time: number): Promise<boolean> {
    return this.#data.hasCallsBefore(tenant, time)
  }

  /** The database stays open. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#trimming
  }
}

interface RowScope {
  readonly tenant: string
  readonly maxAgeMs: number
  readonly maxBytes: number
  readonly onStored: (bytes: number) => void
}

interface ResponseRow {
  readonly id: string
  readonly body: string
  readonly input: string
  readonly previous: string | null
  readonly conversation: string | null
}

interface ConversationRow {
  readonly id: string
  readonly metadata: string
  readonly created_at: number
}

interface ItemRow {
  readonly id: string
  readonly body: string
  readonly response: string | null
}

class TenantRows implements TenantResponses {
  readonly #database: Database
  readonly #scope: RowScope

  constructor(database: Database, scope: RowScope) {
    this.#database = database
    this.#scope = scope
  }

  /** SQL condition of a row of this tenant that has not expired. Its parameters are the id and the tenant. */
  get #isFound(): string {
    return `id = ? AND tenant = ? AND used_at > ${this.#database.clock} - ${this.#scope.maxAgeMs}`
  }

  async saveResponse(response: StoredResponse, items: readonly ConversationItem[]): Promise<boolean> {
    const { id, body, input, previousId, conversationId } = response
    const { clock } = this.#database
    const { tenant, maxBytes, onStored } = this.#scope
    const bytes = sizeOf(response)
    if (bytes > maxBytes) return false
    await this.#database.transaction(async (queries) => {
      await queries.query(
        `INSERT INTO modelmount_responses
           (id, tenant, previous, conversation, body, input, bytes, created_at, used_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ${clock}, ${clock})`,
        [id, tenant, previousId ?? null, conversationId ?? null, body, input, bytes],
      )
      if (conversationId !== undefined) await this.#addItems(queries, conversationId, items)
    })
    onStored(bytes)
    return true
  }

  async findResponse(id: string): Promise<StoredResponse | undefined> {
    const [row] = await this.#database.query<ResponseRow>(
      `UPDATE modelmount_responses SET used_at = ${this.#database.clock} WHERE ${this.#isFound}
       RETURNING id, body, input, previous, conversation`,
      [id, this.#scope.tenant],
    )
    if (!row) return undefined
    const { previous, conversation, ...response } = row
    return {
      ...response,
      previousId: previous ?? undefined,
      conversationId: conversation ?? undefined,
    }
  }

  deleteResponse(id: string): Promise<boolean> {
    return this.#database.transaction(async (queries) => {
      const [row] = await queries.query<Pick<ResponseRow, 'conversation'>>(
        `DELETE FROM modelmount_responses WHERE ${this.#isFound} RETURNING conversation`,
        [id, this.#scope.tenant],
      )
      if (row?.conversation != null) await deleteItems(queries, row.conversation, 'response', id)
      return row !== undefined
    })
  }

  async saveConversation({ id, metadata }: StoredConversation): Promise<void> {
    const { clock } = this.#database
    const json = JSON.stringify(metadata)
    const bytes = overheadBytes + Buffer.byteLength(json)
    await this.#database.query(
      `INSERT INTO modelmount_conversations (id, tenant, metadata, bytes, created_at, used_at)
       VALUES (?, ?, ?, ?, ${clock}, ${clock})
       ON CONFLICT (id) DO UPDATE SET metadata = excluded.metadata, used_at = excluded.used_at,
         bytes = modelmount_conversations.bytes + length(excluded.metadata)
           - length(modelmount_conversations.metadata)
       WHERE modelmount_conversations.tenant = excluded.tenant`,
      [id, this.#scope.tenant, json, bytes],
    )
    this.#scope.onStored(bytes)
  }

  async findConversation(id: string): Promise<StoredConversation | undefined> {
    const [row] = await this.#database.query<ConversationRow>(
      `UPDATE modelmount_conversations SET used_at = ${this.#database.clock} WHERE ${this.#isFound}
       RETURNING id, metadata, created_at`,
      [id, this.#scope.tenant],
    )
    return row && { id, metadata: JSON.parse(row.metadata), createdAt: new Date(row.created_at) }
  }

  deleteConversation(id: string): Promise<boolean> {
    return this.#database.transaction(async ({ query }) => {
      const rows = await query(`DELETE FROM modelmount_conversations WHERE ${this.#isFound} RETURNING id`, [
        id,
        this.#scope.tenant,
      ])
      if (rows.length > 0)
        await query('DELETE FROM modelmount_conversation_items WHERE conversation = ?', [id])
      return rows.length > 0
    })
  }

  addItems(conversationId: string, items: readonly ConversationItem[]): Promise<boolean> {
    return this.#database.transaction((queries) => this.#addItems(queries, conversationId, items))
  }

  async listItems(conversationId: string): Promise<readonly ConversationItem[]> {
    if (!(await this.findConversation(conversationId))) return []
    const rows = await this.#database.query<ItemRow>(
      'SELECT id, body, response FROM modelmount_conversation_items WHERE conversation = ? ORDER BY position',
      [conversationId],
    )
    return rows.map(({ id, body, response }) => ({
      id: JSON.parse(id) as string,
      body,
      responseId: response ?? undefined,
    }))
  }

  async deleteItem(conversationId: string, itemId: string): Promise<boolean> {
    if (!(await this.findConversation(conversationId))) return false
    return this.#database.transaction((queries) =>
      deleteItems(queries, conversationId, 'id', JSON.stringify(itemId)),
    )
  }

  async #addItems(
    { query }: Queries,
    conversationId: string,
    items: readonly ConversationItem[],
  ): Promise<boolean> {
    const bytesOf = ({ body }: ConversationItem): number => overheadBytes + Buffer.byteLength(body)
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0)
    // Locks the conversation, so that the items of two responses get different positions.
    const [row] = await query<{ readonly next_position: number }>(
      `UPDATE modelmount_conversations
       SET bytes = bytes + ?, next_position = next_position + ?, used_at = ${this.#database.clock}
       WHERE ${this.#isFound} RETURNING next_position`,
      [bytes, items.length, conversationId, this.#scope.tenant],
    )
    if (!row) return false
    const first = row.next_position - items.length
    for (const [index, item] of items.entries())
      await query(
        `INSERT INTO modelmount_conversation_items (conversation, position, id, response, body, bytes)
         VALUES (?, ?, ?, ?, ?, ?)`,
        [
          ...[conversationId, first + index, JSON.stringify(item.id), item.responseId ?? null, item.body],
          bytesOf(item),
        ],
      )
    this.#scope.onStored(bytes)
    return true
  }
}

/** Deletes the items of a conversation with a value in a column. Returns whether there were any. */
async function deleteItems(
  { query }: Queries,
  conversationId: string,
  column: 'id' | 'response',
  value: string,
): Promise<boolean> {
  const rows = await query<{ readonly bytes: number }>(
    `DELETE FROM modelmount_conversation_items WHERE conversation = ? AND ${column} = ? RETURNING bytes`,
    [conversationId, value],
  )
  await query('UPDATE modelmount_conversations SET bytes = bytes - ? WHERE id = ?', [
    rows.reduce((sum, { bytes }) => sum + bytes, 0),
    conversationId,
  ])
  return rows.length > 0
}
