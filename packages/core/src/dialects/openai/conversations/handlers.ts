/** Routes of conversations. Shape: OpenAI API reference, "Conversations". */
import { z } from 'zod'
import { LlmError } from '../../../errors.ts'
import { json } from '../../../http/respond.ts'
import type { StoredConversation, TenantResponses } from '../../../response-store/response-store.ts'
import type { Handler, RouteCall } from '../../dialect.ts'
import { optional, truncateForError } from '../../fields.ts'
import { list, parse } from '../../parse.ts'
import { storageRoute } from '../../storage-route.ts'
import { formatIssue } from '../errors.ts'
import { toItemPage, toList } from '../page.ts'
import { createConversationId, createItemId, isStorableId } from '../responses/item-ids.ts'
import { ItemStore } from '../responses/item-store.ts'
import { InputItem } from '../responses/items.ts'
import { conversationNotFound } from '../responses/request-items.ts'
import { Metadata } from '../responses/schema.ts'
import { type ItemObject, toItemObjects } from '../responses/stored-items.ts'

/** `POST /v1/conversations` */
export const createConversation = conversationRoute(async ({ request, responses }) => {
  const body = await request.json({})
  const { metadata = {} } = parse(NewConversation, body, formatIssue)
  const conversation = { id: createConversationId(), createdAt: new Date(), metadata }
  await responses.saveConversation(conversation)
  await addItems(responses, conversation.id, body)
  return json(toObject(conversation))
})

/** `GET /v1/conversations/{id}` */
export const retrieveConversation = conversationRoute(async (call) => json(toObject(await find(call))))

/** `POST /v1/conversations/{id}`: replaces the metadata. */
export const updateConversation = conversationRoute(async (call) => {
  const { metadata } = parse(Update, await call.request.json(), formatIssue)
  const conversation = { ...(await find(call)), metadata: metadata ?? {} }
  await call.responses.saveConversation(conversation)
  return json(toObject(conversation))
})

/** `DELETE /v1/conversations/{id}`. Its responses stay. */
export const deleteConversation = conversationRoute(async (call) => {
  const { id } = await find(call)
  await call.responses.deleteConversation(id)
  return json({ id, object: 'conversation.deleted', deleted: true })
})

/** `POST /v1/conversations/{id}/items` */
export const createItems = conversationRoute(async (call) => {
  const body = await call.request.json()
  parse(NewItems, body, formatIssue)
  const { id } = await find(call)
  return json(toList(await addItems(call.responses, id, body), false))
})

/** `GET /v1/conversations/{id}/items` */
export const listItems = conversationRoute(async (call) =>
  json(toItemPage(call.request, await loadItems(call))),
)

/** `GET /v1/conversations/{id}/items/{item}` */
export const retrieveItem = conversationRoute(async (call) => {
  const id = call.request.params.item ?? ''
  const item = (await loadItems(call)).find((one) => one.id === id)
  if (!item) throw itemNotFound(id)
  return json(item)
})

/** `DELETE /v1/conversations/{id}/items/{item}`: returns the conversation. */
export const deleteItem = conversationRoute(async (call) => {
  const conversation = await find(call)
  const id = call.request.params.item ?? ''
  if (!(await call.responses.deleteItem(conversation.id, id))) throw itemNotFound(id)
  return json(toObject(conversation))
})

interface ConversationCall extends RouteCall {
  readonly responses: TenantResponses
}

/** Wraps a handler. If the app stores nothing, all its routes are `not_found`. */
function conversationRoute(handle: (call: ConversationCall) => ReturnType<Handler>): Handler {
  return storageRoute(async (call) => {
    const { responses } = call.llm
    if (!responses) throw new LlmError('not_found', 'This server does not store conversations.')
    return handle({ ...call, responses })
  })
}

/** Items of one request, as in OpenAI's API. */
const maxItems = 20
const NewConversation = z.object({
  items: optional(list(InputItem, { max: maxItems })),
  metadata: optional(Metadata),
})
const NewItems = z.object({ items: list(InputItem, { min: 1, max: maxItems }) })
const Update = z.object({ metadata: Metadata.nullable() })

/** Throws `not_found`, also for a conversation of another tenant. */
async function find({ request, responses }: ConversationCall): Promise<StoredConversation> {
  const { id = '' } = request.params
  const conversation = isStorableId('conv', id) ? await responses.findConversation(id) : undefined
  if (!conversation) throw conversationNotFound(id)
  return conversation
}

async function loadItems(call: ConversationCall): Promise<readonly ItemObject[]> {
  const { id } = await find(call)
  const store = new ItemStore(call.responses, call.request.reserve)
  return store.resolveStored(await store.conversation(id))
}

/** Adds the `items` of a validated body. */
async function addItems(
  responses: TenantResponses,
  conversationId: string,
  body: unknown,
): Promise<readonly ItemObject[]> {
  const { items: given } = body as { readonly items?: unknown }
  const items = toItemObjects(given, (type) => createItemId(type, conversationId))
  const added = items.map((item) => ({ id: item.id, body: JSON.stringify(item) }))
  if (added.length > 0) await responses.addItems(conversationId, added)
  return items
}

const toObject = ({ id, createdAt, metadata }: StoredConversation) => ({
  id,
  object: 'conversation',
  created_at: Math.floor(createdAt.getTime() / 1000),
  metadata,
})

const itemNotFound = (id: string): LlmError =>
  new LlmError('not_found', `Item with id '${truncateForError(id)}' not found in the conversation.`)
