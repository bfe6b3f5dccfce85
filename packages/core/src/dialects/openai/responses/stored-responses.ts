/** Routes of stored responses. Shape: OpenAI API reference, "Responses". */
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { HttpRequest } from '../../../http/message.ts'
import { json } from '../../../http/respond.ts'
import type { RouteCall } from '../../dialect.ts'
import { truncateForError } from '../../fields.ts'
import { storageRoute } from '../../storage-route.ts'
import { toItemPage } from '../page.ts'
import { isStorableId } from './item-ids.ts'
import { ItemStore } from './item-store.ts'

/** `GET /v1/responses/{id}` */
export const retrieveResponse = storageRoute(async (call) => {
  if (call.request.query('stream') === 'true')
    throw invalidRequest("Invalid 'stream': the events of a stored response are not stored.", {
      param: 'stream',
      issue: 'unsupported',
    })
  const { response } = await find(call)
  return json(response.body)
})

/** `DELETE /v1/responses/{id}` */
export const deleteResponse = storageRoute(async ({ request, llm }) => {
  const id = idOf(request)
  if (!isStorableId('resp', id) || !(await llm.responses?.deleteResponse(id))) throw notFound(id, llm)
  return json({ id, object: 'response', deleted: true })
})

/** `GET /v1/responses/{id}/input_items` */
export const listInputItems = storageRoute(async (call) => {
  const { response, store } = await find(call)
  return json(toItemPage(call.request, await store.inputOf(response)))
})

/** `POST /v1/responses/{id}/cancel` */
export const cancelResponse = storageRoute(async (call) => {
  await find(call)
  throw invalidRequest('Cannot cancel a synchronous response.')
})

/** `POST /v1/responses/compact`, which is not implemented. */
export const rejectCompaction = storageRoute(async ({ request: { method, path } }) => {
  throw new LlmError('not_found', `Invalid URL (${method} ${path}): this server does not compact responses.`)
})

/** Throws `not_found`, also for a response of another tenant. */
async function find({ request, llm }: Pick<RouteCall, 'request' | 'llm'>) {
  const id = idOf(request)
  const store = llm.responses && new ItemStore(llm.responses, request.reserve)
  const response = await store?.findResponse(id)
  if (!store || !response) throw notFound(id, llm)
  return { response, store }
}

const idOf = ({ params: { id = '' } }: HttpRequest): string => id

const notFound = (id: string, { responses }: RouteCall['llm']): LlmError =>
  new LlmError(
    'not_found',
    `Response with id '${truncateForError(id)}' not found${responses ? '.' : ': this server does not store responses.'}`,
  )
