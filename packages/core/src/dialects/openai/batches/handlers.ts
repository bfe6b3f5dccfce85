/** Routes of batches. Shape: OpenAI API reference, "Batch". */
import { z } from 'zod'
import type { Batch } from '../../../batches/batch.ts'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { HttpRequest } from '../../../http/message.ts'
import { json } from '../../../http/respond.ts'
import { optional } from '../../fields.ts'
import { parse } from '../../parse.ts'
import { storageRoute } from '../../storage-route.ts'
import { formatIssue } from '../errors.ts'
import { parsePage, toList } from '../page.ts'
import { openaiBatches } from './api.ts'

/** `POST /v1/batches` */
export const createBatch = storageRoute(async ({ request, llm }) => {
  const body = parse(BatchRequest, await request.json(), formatIssue)
  const { input_file_id: fileId, endpoint, metadata } = body
  const file = await llm.batches.files.get(fileId).catch((cause: unknown) => {
    throw LlmError.is(cause) && cause.code === 'not_found' ? fileNotFound(cause.message) : cause
  })
  if (file.purpose !== 'batch') throw fileNotFound("the purpose of the file is not 'batch'.")
  return json(
    toBatchObject(await llm.batches.createFromFile(file.id, { format: 'openai', endpoint, metadata })),
  )
})

/** `GET /v1/batches`: one page, newest first. */
export const listBatches = storageRoute(async ({ request, llm }) => {
  const { limit = 20, after } = parsePage(request, 100)
  const { batches, hasMore } = await llm.batches.list({ format: 'openai', limit, after })
  return json(toList(batches.map(toBatchObject), hasMore))
})

/** `GET /v1/batches/{id}` */
export const retrieveBatch = storageRoute(async ({ request, llm }) =>
  json(toBatchObject(await llm.batches.get(idOf(request)))),
)

/** `POST /v1/batches/{id}/cancel` */
export const cancelBatch = storageRoute(async ({ request, llm }) =>
  json(toBatchObject(await llm.batches.cancel(idOf(request)))),
)

/** A batch in the format of another API is not found. */
const idOf = ({ params: { id = '' } }: HttpRequest): string => (id.startsWith('batch_') ? id : '')

const BatchRequest = z.object({
  input_file_id: z.string(),
  endpoint: z.enum(openaiBatches.endpoints as [string, ...string[]], {
    error: `expected one of ${openaiBatches.endpoints.join(', ')}.`,
  }),
  completion_window: z.literal('24h', { error: "expected '24h'." }),
  metadata: optional(
    z
      .record(z.string().max(64), z.string().max(512))
      .refine((given) => Object.keys(given).length <= 16, 'expected at most 16 entries.'),
  ),
})

const fileNotFound = (reason: string): LlmError =>
  invalidRequest(`Invalid 'input_file_id': ${reason}`, { param: 'input_file_id', issue: 'value' })

function toBatchObject(batch: Batch) {
  const { id, counts, createdAt, startedAt, expiresAt, endedAt, cancelRequestedAt, problems } = batch
  const status = statusOf(batch)
  const { processing, succeeded, errored, canceled, expired } = counts
  const endedAs = (one: typeof status): number | null => (status === one ? toSeconds(endedAt) : null)
  return {
    id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: problems
      ? {
          object: 'list',
          data: problems.map(({ code, message, param = null, line = null }) => ({
            code,
            message,
            param,
            line,
          })),
        }
      : null,
    input_file_id: batch.inputFileId ?? null,
    completion_window: '24h',
    status,
    output_file_id: batch.outputFileId ?? null,
    error_file_id: batch.errorFileId ?? null,
    created_at: toSeconds(createdAt),
    in_progress_at: toSeconds(startedAt),
    expires_at: toSeconds(expiresAt),
    finalizing_at: status === 'completed' ? toSeconds(endedAt) : null,
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: toSeconds(cancelRequestedAt),
    cancelled_at: endedAs('cancelled'),
    request_counts: {
      total: processing + succeeded + errored + canceled + expired,
      completed: succeeded,
      failed: errored + expired,
    },
    metadata: batch.metadata ?? null,
  }
}

function statusOf({ status, cancelRequestedAt, counts }: Batch) {
  if (status === 'canceling') return 'cancelling'
  if (status !== 'ended') return status
  if (cancelRequestedAt) return 'cancelled'
  return counts.expired > 0 ? 'expired' : 'completed'
}

const toSeconds = (time: Date | undefined): number | null =>
  time ? Math.floor(time.getTime() / 1_000) : null
