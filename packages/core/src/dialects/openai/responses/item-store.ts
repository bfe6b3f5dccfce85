/** Reads what a request continues: earlier responses, a conversation, and items that the request refers to by id. */
import { limits } from '../../../engine/request-limits.ts'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { StoredResponse, TenantResponses } from '../../../response-store/response-store.ts'
import { truncateForError } from '../../fields.ts'
import { isStorableId, ownersOf } from './item-ids.ts'
import { type ItemObject, isContinuable, isReference, outputOf, parseItems } from './stored-items.ts'

interface LoadedResponse extends Pick<StoredResponse, 'id' | 'previousId' | 'conversationId'> {
  readonly body: Readonly<Record<string, unknown>>
  readonly input: readonly ItemObject[]
}
interface LoadedItem extends Pick<ItemObject, 'id'> {
  readonly item: ItemObject
  /** The response that has added the item to its conversation. */
  readonly responseId: string | undefined
}

/** Each response and conversation is loaded once. */
export class ItemStore {
  readonly #store: TenantResponses
  readonly #reserve: (bytes: number) => void
  readonly #responses = new Map<string, Promise<LoadedResponse | undefined>>()
  readonly #conversations = new Map<string, Promise<readonly LoadedItem[]>>()

  /** @param reserve reserves memory for loaded items. Throws an `LlmError` */
  constructor(store: TenantResponses, reserve: (bytes: number) => void = () => {}) {
    this.#store = store
    this.#reserve = reserve
  }

  findResponse(id: string): Promise<LoadedResponse | undefined> {
    return getOrAdd(this.#responses, id, () => this.#loadResponse(id))
  }

  /**
   * Returns the items that a request with `previous_response_id` continues, the oldest first. Throws
   * `invalid_request` if a response is not stored any more.
   */
  async history(id: string): Promise<readonly ItemObject[]> {
    const items: (readonly ItemObject[])[] = []
    let count = 0
    for (let next: string | undefined = id; next !== undefined; ) {
      const response: LoadedResponse | undefined = await this.findResponse(next)
      if (!response) throw previousNotFound(id, next)
      if (response.body.status === 'failed') throw previousFailed(id)
      const output = outputOf(response.body).filter(isContinuable)
      items.push(output, response.input, await this.#itemsBefore(response))
      count += output.length + response.input.length
      if (count > limits.messages) throw tooManyItems('previous_response_id')
      next = response.previousId
    }
    return this.resolve(items.reverse().flat())
  }

  /** The input items of a response, with those of the responses before it that are still stored, the oldest first. */
  async inputOf(response: LoadedResponse): Promise<readonly ItemObject[]> {
    const items: (readonly ItemObject[])[] = [response.input, await this.#itemsBefore(response)]
    let previous = response.previousId
    while (previous !== undefined) {
      const found = await this.findResponse(previous)
      if (found) items.push(outputOf(found.body), found.input, await this.#itemsBefore(found))
      previous = found?.previousId
    }
    return this.resolveStored(items.reverse().flat())
  }

  /** The items of a conversation, the oldest first. Empty if the conversation does not exist. */
  async conversation(id: string): Promise<readonly ItemObject[]> {
    return (await this.#loadItems(id)).map(({ item }) => item)
  }

  /** Replaces references by their items. Throws `not_found` for an item that is not stored. */
  async resolve(items: readonly ItemObject[]): Promise<readonly ItemObject[]> {
    const resolved: ItemObject[] = []
    for (const item of items) {
      const found = isReference(item) ? await this.#findItem(item.id) : item
      if (!found) throw itemNotFound(item.id)
      resolved.push(found)
    }
    return resolved
  }

  /** Replaces references by their items. Leaves out those that have been deleted. */
  async resolveStored(items: readonly ItemObject[]): Promise<readonly ItemObject[]> {
    const resolved: ItemObject[] = []
    for (const item of items) {
      const found = isReference(item) ? await this.#findItem(item.id) : item
      if (found) resolved.push(found)
    }
    return resolved
  }

  async #findItem(id: string): Promise<ItemObject | undefined> {
    const owners = ownersOf(id)
    if (!owners) return undefined
    const response = await this.findResponse(owners.response)
    const items = response
      ? [...response.input, ...outputOf(response.body)]
      : await this.conversation(owners.conversation)
    return items.find((item) => item.id === id && !isReference(item))
  }

  /** The items that were in the conversation of a response before the response. */
  async #itemsBefore({ id, conversationId }: LoadedResponse): Promise<readonly ItemObject[]> {
    if (conversationId === undefined) return []
    const items = await this.#loadItems(conversationId)
    const index = items.findIndex(({ responseId }) => responseId === id)
    return items.slice(0, Math.max(0, index)).map(({ item }) => item)
  }

  async #loadResponse(id: string): Promise<LoadedResponse | undefined> {
    const found = isStorableId('resp', id) ? await this.#store.findResponse(id) : undefined
    if (!found) return undefined
    const { body, input, ...response } = found
    this.#reserve(Buffer.byteLength(body) + Buffer.byteLength(input))
    return { ...response, body: JSON.parse(body), input: parseItems(input) }
  }

  #loadItems(id: string): Promise<readonly LoadedItem[]> {
    return getOrAdd(this.#conversations, id, () => this.#readItems(id))
  }

  async #readItems(id: string): Promise<readonly LoadedItem[]> {
    const items = isStorableId('conv', id) ? await this.#store.listItems(id) : []
    this.#reserve(items.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0))
    return items.map(({ id, body, responseId }) => ({ id, item: JSON.parse(body) as ItemObject, responseId }))
  }
}

function getOrAdd<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  const value = map.get(key) ?? create()
  map.set(key, value)
  return value
}

const previousNotFound = (id: string, missing: string): LlmError =>
  invalidRequest(
    `Previous response with id '${truncateForError(id)}' not found${
      missing === id ? '.' : `: it continues the response '${missing}', which is not stored any more.`
    }`,
    { param: 'previous_response_id', issue: 'value' },
  )

const previousFailed = (id: string): LlmError =>
  invalidRequest(`Previous response with id '${id}' not found: it has failed, so it cannot be continued.`, {
    param: 'previous_response_id',
    issue: 'value',
  })

export const tooManyItems = (param: string): LlmError =>
  invalidRequest(`Invalid '${param}': the conversation has more than ${limits.messages} items.`, {
    param,
    issue: 'array_too_long',
  })

const itemNotFound = (id: string): LlmError =>
  new LlmError(
    'not_found',
    `Item with id '${truncateForError(id)}' not found. Items are not stored if 'store' is false, and not longer than responses. Send the item itself instead.`,
    { param: 'input' },
  )
