/** The store of responses and conversations: what it contains, and what a caller's tenant can do with it. */
import type { TenantData } from '../accounts/tenants/tenant-data.ts'

export interface StoredResponse {
  readonly id: string
  /** The response object, as JSON. */
  readonly body: string
  /** The input items of its request, each with an id, as a JSON list. */
  readonly input: string
  /** The response that it continues. */
  readonly previousId?: string | undefined
  /** The conversation that it continues. */
  readonly conversationId?: string | undefined
}

export interface StoredConversation {
  readonly id: string
  readonly createdAt: Date
  readonly metadata: Readonly<Record<string, unknown>>
}

/** An item of a conversation. */
export interface ConversationItem {
  readonly id: string
  /** The item, as JSON. */
  readonly body: string
  /** The response that has added it. */
  readonly responseId?: string | undefined
}

/** The responses and conversations of one tenant. Each use of an entry restarts its time. */
export interface TenantResponses {
  /**
   * Also adds the items to the conversation of the response, if it still exists. Returns `false` if the response is
   * too large, and then stores neither.
   */
  saveResponse(response: StoredResponse, items: readonly ConversationItem[]): Promise<boolean>
  findResponse(id: string): Promise<StoredResponse | undefined>
  /** Also deletes its items from its conversation. Returns whether it existed. */
  deleteResponse(id: string): Promise<boolean>
  /** Creates a conversation, or replaces its metadata. */
  saveConversation(conversation: StoredConversation): Promise<void>
  findConversation(id: string): Promise<StoredConversation | undefined>
  /** The responses of the conversation stay. Returns whether it existed. */
  deleteConversation(id: string): Promise<boolean>
  /** Adds items behind the others. Returns `false` if the conversation does not exist. */
  addItems(conversationId: string, items: readonly ConversationItem[]): Promise<boolean>
  /** All items, the oldest first. Empty if the conversation does not exist. */
  listItems(conversationId: string): Promise<readonly ConversationItem[]>
  /** Returns whether the item existed. */
  deleteItem(conversationId: string, itemId: string): Promise<boolean>
}

export interface ResponseStore extends TenantData {
  forTenant(tenant: string): TenantResponses
  close(): Promise<void>
}

/** Limits of a store. The least recently used entries are deleted first. */
export interface StoreBounds {
  /** Size of the entries of all tenants, in bytes. */
  readonly maxBytes: number
  /** Size of the entries of one tenant, in bytes. A larger response is not stored, and a larger conversation is deleted. */
  readonly maxBytesPerTenant: number
  /** How long an entry is kept after its last use, in ms. */
  readonly maxAgeMs: number
}

export const sizeOf = ({ body, input }: Pick<StoredResponse, 'body' | 'input'>): number =>
  overheadBytes + Buffer.byteLength(body) + Buffer.byteLength(input)

/** Memory of an entry or an item besides its JSON, in bytes: ids, times and the place in an index. */
export const overheadBytes = 512
