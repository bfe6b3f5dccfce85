/** Stores responses and conversations in the memory of this process. */
import type { LRUCache } from 'lru-cache'
import type { DataDeletion, DeletedCounts } from '../accounts/tenants/tenant-data.ts'
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

/** Texts are kept as UTF-8, whose size is known. A string can take twice as much. */
type Packed<Value, Texts extends keyof Value> = Omit<Value, Texts> & Readonly<Record<Texts, Buffer>>
type PackedResponse = Packed<StoredResponse, 'body' | 'input'>
type PackedItem = Packed<ConversationItem, 'body'>
interface PackedConversation {
  readonly conversation: StoredConversation
  readonly items: readonly PackedItem[]
}
type Entry = { readonly savedAt: number; readonly bytes: number } & (
  | { readonly response: PackedResponse }
  | PackedConversation
)
type Entries = LRUCache<string, Entry>

const purgeEveryMs = 60_000
/** Clocks of machines that share a database can differ by this much. */
const clockToleranceMs = 10_000

export class MemoryStore implements ResponseStore {
  readonly #bounds: StoreBounds
  readonly #now: () => number
  readonly #tenants = new Map<string, Entries>()
  #lru: typeof LRUCache | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** @param now clock in ms. It must not return 0, which lru-cache treats as "no lifetime". */
  constructor(bounds: StoreBounds, now: () => number = () => performance.now()) {
    this.#bounds = bounds
    this.#now = now
  }

  /** Memory that all entries take, in bytes. */
  get bytes(): number {
    let bytes = 0
    for (const { calculatedSize } of this.#tenants.values()) bytes += calculatedSize
    return bytes
  }

  forTenant(tenant: string): TenantResponses {
    return new TenantMemory({
      maxBytes: Math.min(this.#bounds.maxBytesPerTenant, this.#bounds.maxBytes),
      open: () => this.#open(),
      find: (id) => this.#tenants.get(tenant)?.get(id),
      save: (id, entry) => this.#save(tenant, id, entry),
      delete: (id) => this.#delete(tenant, id),
    })
  }

  async deleteTenant({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<DeletedCounts> {
    const entries = [...(this.#tenants.get(tenant)?.values() ?? [])]
    if (!this.#tenants.delete(tenant)) return {}
    const conversations = entries.filter((entry) => 'conversation' in entry).length
    return { responses: entries.length - conversations, conversations }
  }

  async hasCallsBefore(tenant: string, time: number): Promise<boolean> {
    const entries = this.#tenants.get(tenant)?.values() ?? []
    return [...entries].some(({ savedAt }) => savedAt <= time + clockToleranceMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#tenants.clear()
  }

  /** Imports the cache before the first entry is stored, so that the app starts faster. */
  async #open(): Promise<void> {
    this.#lru ??= (await import('lru-cache')).LRUCache
  }

  #save(tenant: string, id: string, entry: Entry): void {
    if (this.#isClosed || !this.#lru) return
    const { maxBytes, maxBytesPerTenant, maxAgeMs } = this.#bounds
    let entries = this.#tenants.get(tenant)
    if (!entries) {
      entries = new this.#lru<string, Entry>({
        maxSize: Math.max(1, maxBytesPerTenant),
        sizeCalculation: ({ bytes }) => bytes,
        ttl: maxAgeMs,
        updateAgeOnGet: true,
        ttlResolution: 0,
        perf: { now: this.#now },
      })
      this.#tenants.set(tenant, entries)
    }
    entries.set(id, entry)
    for (let excess = this.bytes - maxBytes; excess > 0; ) excess -= this.#evictFromLargest()
    this.#timer ??= setInterval(() => this.#purge(), Math.min(purgeEveryMs, maxAgeMs)).unref()
  }

  /** The tenant with the most bytes loses its least recently used entry, so that it cannot evict those of others. */
  #evictFromLargest(): number {
    let largest: Entries | undefined
    for (const entries of this.#tenants.values())
      if (entries.calculatedSize > (largest?.calculatedSize ?? 0)) largest = entries
    return largest?.pop()?.bytes ?? Number.POSITIVE_INFINITY
  }

  #delete(tenant: string, id: string): boolean {
    const entries = this.#tenants.get(tenant)
    // An expired entry has not been deleted yet.
    const isFound = entries?.get(id) !== undefined
    entries?.delete(id)
    return isFound
  }

  #purge(): void {
    for (const [tenant, entries] of this.#tenants) {
      entries.purgeStale()
      if (entries.size === 0) this.#tenants.delete(tenant)
    }
    if (this.#tenants.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** The entries of one tenant. `find` does not return expired ones. */
interface EntryAccess {
  /** Size of a response. */
  readonly maxBytes: number
  /** Must be called before the first `save`. Everything else is synchronous, so that no change gets lost. */
  open(): Promise<void>
  find(id: string): Entry | undefined
  save(id: string, entry: Entry): void
  delete(id: string): boolean
}

class TenantMemory implements TenantResponses {
  readonly #entries: EntryAccess

  constructor(entries: EntryAccess) {
    this.#entries = entries
  }

  async saveResponse(response: StoredResponse, items: readonly ConversationItem[]): Promise<boolean> {
    const bytes = sizeOf(response)
    if (bytes > this.#entries.maxBytes) return false
    await this.#entries.open()
    const packed = { ...response, body: pack(response.body), input: pack(response.input) }
    this.#entries.save(response.id, { savedAt: Date.now(), bytes, response: packed })
    if (response.conversationId !== undefined) await this.addItems(response.conversationId, items)
    return true
  }

  async findResponse(id: string): Promise<StoredResponse | undefined> {
    const entry = this.#entries.find(id)
    if (!entry || !('response' in entry)) return undefined
    const { body, input, ...response } = entry.response
    return { ...response, body: body.toString(), input: input.toString() }
  }

  async deleteResponse(id: string): Promise<boolean> {
    const entry = this.#entries.find(id)
    if (!entry || !('response' in entry)) return false
    this.#entries.delete(id)
    const { conversationId = '' } = entry.response
    const packed = this.#findPacked(conversationId)
    if (packed)
      this.#savePacked({
        ...packed,
        items: packed.items.filter(({ responseId }) => responseId !== id),
      })
    return true
  }

  async saveConversation(conversation: StoredConversation): Promise<void> {
    await this.#entries.open()
    const items = this.#findPacked(conversation.id)?.items ?? []
    this.#savePacked({ conversation, items })
  }

  async findConversation(id: string): Promise<StoredConversation | undefined> {
    return this.#findPacked(id)?.conversation
  }

  async deleteConversation(id: string): Promise<boolean> {
    return this.#findPacked(id) !== undefined && this.#entries.delete(id)
  }

  async addItems(conversationId: string, items: readonly ConversationItem[]): Promise<boolean> {
    const packed = this.#findPacked(conversationId)
    if (!packed) return false
    const added = items.map((item) => ({ ...item, body: pack(item.body) }))
    this.#savePacked({ ...packed, items: [...packed.items, ...added] })
    return true
  }

  async listItems(conversationId: string): Promise<readonly ConversationItem[]> {
    const { items = [] } = this.#findPacked(conversationId) ?? {}
    return items.map((item) => ({ ...item, body: item.body.toString() }))
  }

  async deleteItem(conversationId: string, itemId: string): Promise<boolean> {
    const packed = this.#findPacked(conversationId)
    const items = packed?.items.filter(({ id }) => id !== itemId)
    if (!packed || !items || items.length === packed.items.length) return false
    this.#savePacked({ ...packed, items })
    return true
  }

  #findPacked(id: string): PackedConversation | undefined {
    const entry = this.#entries.find(id)
    return entry && 'conversation' in entry ? entry : undefined
  }

  #savePacked({ conversation, items }: PackedConversation): void {
    const bytes = items.reduce(
      (sum, { body }) => sum + overheadBytes + body.byteLength,
      overheadBytes + Buffer.byteLength(JSON.stringify(conversation.metadata)),
    )
    this.#entries.save(conversation.id, { savedAt: Date.now(), bytes, conversation, items })
  }
}

/** Not from the pool of `Buffer.from`, in which a small text would keep the memory of its neighbours. */
function pack(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}
