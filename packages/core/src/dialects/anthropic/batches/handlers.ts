/** Routes of message batches. Shape: Anthropic API reference, "Message Batches". */
import type { Batch } from '../../../batches/batch.ts'
import type { HttpRequest } from '../../../http/message.ts'
import { json } from '../../../http/respond.ts'
import { jsonLines } from '../../../http/streams.ts'
import { storageRoute } from '../../storage-route.ts'
import { parsePage } from '../page.ts'

/** `POST /v1/messages/batches` */
export const createBatch = storageRoute(async ({ request, llm }) => {
  const { signal } = request
  return json(toMessageBatch(await llm.batches.createFromJson(request.jsonBytes(), { signal }), request))
})

/** `GET /v1/messages/batches`: one page, newest first. */
export const listBatches = storageRoute(async ({ request, llm }) => {
  const { limit, after_id: after, before_id: before } = parsePage(request)
  const { batches, hasMore } = await llm.batches.list({ format: 'anthropic', limit, after, before })
  return json({
    data: batches.map((batch) => toMessageBatch(batch, request)),
    has_more: hasMore,
    first_id: batches.at(0)?.id ?? null,
    last_id: batches.at(-1)?.id ?? null,
  })
})

/** `GET /v1/messages/batches/{id}`. A header has the counts so far, which the object has only at the end. */
export const retrieveBatch = storageRoute(async ({ request, llm }) => {
  const batch = await llm.batches.get(idOf(request))
  return json(toMessageBatch(batch, request), 200, {
    'x-modelmount-batch-progress': JSON.stringify(batch.counts),
  })
})

/** `POST /v1/messages/batches/{id}/cancel` */
export const cancelBatch = storageRoute(async ({ request, llm }) =>
  json(toMessageBatch(await llm.batches.cancel(idOf(request)), request)),
)

/** `DELETE /v1/messages/batches/{id}` */
export const deleteBatch = storageRoute(async ({ request, llm }) => {
  const id = idOf(request)
  await llm.batches.delete(id)
  return json({ id, type: 'message_batch_deleted' })
})

/** `GET /v1/messages/batches/{id}/results` */
export const batchResults = storageRoute(async ({ request, llm, onError }) =>
  jsonLines(await llm.batches.resultLines(idOf(request)), { onError }),
)

/** A batch in the format of another API is not found. */
const idOf = ({ params: { id = '' } }: HttpRequest): string => (id.startsWith('msgbatch_') ? id : '')

/** While a batch has not ended, all its items count as processing, as in the hosted API. */
function toMessageBatch(batch: Batch, request: HttpRequest): object {
  const { id, status, counts, createdAt, expiresAt, endedAt, cancelRequestedAt, archivedAt } = batch
  const hasEnded = status === 'ended' || status === 'failed'
  const { processing, succeeded, errored, canceled, expired } = counts
  const total = processing + succeeded + errored + canceled + expired
  return {
    id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : status === 'canceling' ? 'canceling' : 'in_progress',
    request_counts: hasEnded
      ? { processing: 0, succeeded, errored, canceled, expired }
      : { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    cancel_initiated_at: cancelRequestedAt?.toISOString() ?? null,
    archived_at: archivedAt?.toISOString() ?? null,
    results_url:
      hasEnded && !archivedAt ? `${request.baseUrl() ?? ''}/v1/messages/batches/${id}/results` : null,
  }
}
