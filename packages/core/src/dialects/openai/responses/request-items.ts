/** The items of a request: what it continues, and its own input. */
import { limits } from '../../../engine/request-limits.ts'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { TenantResponses } from '../../../response-store/response-store.ts'
import type { ModelCall } from '../../dialect.ts'
import { truncateForError } from '../../fields.ts'
import { parse } from '../../parse.ts'
import { formatIssue } from '../errors.ts'
import { isStorableId } from './item-ids.ts'
import { ItemStore, tooManyItems } from './item-store.ts'
import { type Item, Items, isItem } from './items.ts'
import type { ResponsesRequest } from './schema.ts'
import { type ItemObject, toItemObjects } from './stored-items.ts'

export interface RequestItems {
  /** Items of the earlier responses, or of the conversation. */
  readonly history: readonly Item[]
  /** Items of the request. References are replaced by their items. */
  readonly input: readonly Item[]
}

/**
 * Loads the items that a request continues or refers to. Throws `invalid_request` or `not_found` for what is not
 * stored, and the errors of `HttpRequest.reserve`.
 *
 * @param sent the field `input` as the client sent it
 */
export async function loadItems(
  body: ResponsesRequest,
  sent: unknown,
  { request, llm: { responses } }: Pick<ModelCall, 'request' | 'llm'>,
): Promise<RequestItems> {
  const { previous_response_id: previousId, conversation, input } = body
  const own = input.filter(isItem)
  const hasReferences = own.length < input.length
  if (previousId === undefined && !conversation && !hasReferences) return { history: [], input: own }
  if (!responses) throw notStored(body)
  const store = new ItemStore(responses, request.reserve)
  const history = await loadHistory(body, store, responses)
  if (history.length + input.length > limits.messages) throw tooManyItems('input')
  const parseItems = (items: readonly ItemObject[]): readonly Item[] => parse(Items, items, formatIssue)
  return {
    history: parseItems(history),
    input: hasReferences ? parseItems(await store.resolve(toItemObjects(sent, () => ''))) : own,
  }
}

async function loadHistory(
  { previous_response_id: previousId, conversation }: ResponsesRequest,
  store: ItemStore,
  responses: TenantResponses,
): Promise<readonly ItemObject[]> {
  if (previousId !== undefined) return store.history(previousId)
  if (!conversation) return []
  const { id } = conversation
  if (!isStorableId('conv', id) || !(await responses.findConversation(id))) throw conversationNotFound(id)
  return store.resolveStored(await store.conversation(id))
}

export const conversationNotFound = (id: string): LlmError =>
  new LlmError('not_found', `Conversation with id '${truncateForError(id)}' not found.`)

/** The error of a request that needs stored responses, in an app that stores none. */
function notStored({ previous_response_id: previousId, conversation, input }: ResponsesRequest): LlmError {
  if (previousId !== undefined)
    return invalidRequest(
      `Previous response with id '${truncateForError(previousId)}' not found: this server does not store responses.`,
      { param: 'previous_response_id', issue: 'value' },
    )
  if (conversation)
    return invalidRequest("Invalid 'conversation': this server stores no responses.", {
      param: 'conversation',
      issue: 'unsupported',
    })
  const param = `input[${input.findIndex((item) => !isItem(item))}].id`
  return invalidRequest(
    `Invalid '${param}': this server stores no items: send the item itself, as clients do with 'store': false.`,
    { param, issue: 'value' },
  )
}
