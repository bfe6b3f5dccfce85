/** Batches of the Anthropic API. Shape: Anthropic API reference, "Message Batches". */
import { Readable } from 'node:stream'
import { bytesOf } from '../server.ts'
import { type BatchApi, type BatchState, toChunks } from './batch-api.ts'
import type { RequestLine } from './request-lines.ts'

interface MessageBatch {
  readonly id: string
  readonly processing_status: 'in_progress' | 'canceling' | 'ended'
  readonly request_counts: MessageBatchCounts
  readonly created_at: string
  readonly expires_at: string
  readonly ended_at: string | null
}

type MessageBatchCounts = Readonly<
  Record<'processing' | 'succeeded' | 'errored' | 'canceled' | 'expired', number>
>

export const anthropicApi: BatchApi = {
  submit: async (server, _requests, lines) => {
    const body = Readable.toWeb(Readable.from(toChunks(toJson(lines)))) as ReadableStream<Uint8Array>
    return toState(await server.send('POST', batchesPath, { body, contentType: 'application/json' }))
  },
  get: async (server, id) => toState(await server.send('GET', pathOf(id))),
  list: async (server, limit, after) => {
    const query = new URLSearchParams({ limit: `${limit}`, ...(after !== undefined && { after_id: after }) })
    const { data, has_more: hasMore } = await server.get<{ data: MessageBatch[]; has_more: boolean }>(
      `${batchesPath}?${query}`,
    )
    return { batches: data.map((batch) => fromObject(batch)), hasMore }
  },
  cancel: async (server, id) => toState(await server.send('POST', `${pathOf(id)}/cancel`)),
  delete: async (server, id) => {
    await server.send('DELETE', pathOf(id))
    return id
  },
  results: async function* (server, id) {
    yield* bytesOf((await server.send('GET', `${pathOf(id)}/results`)).body)
  },
}

const batchesPath = '/v1/messages/batches'

const pathOf = (id: string): string => `${batchesPath}/${encodeURIComponent(id)}`

async function* toJson(lines: AsyncIterable<RequestLine>): AsyncGenerator<string> {
  let before = '{"requests":['
  for await (const { text } of lines) {
    if (text === '') continue
    yield before + text
    before = ','
  }
  yield ']}'
}

async function toState(response: Response): Promise<BatchState> {
  // The object itself counts all requests as processing until the end, as in the hosted API.
  const progress = response.headers.get('x-modelmount-batch-progress')
  return fromObject(
    (await response.json()) as MessageBatch,
    progress === null ? undefined : JSON.parse(progress),
  )
}

function fromObject(batch: MessageBatch, counts: MessageBatchCounts = batch.request_counts): BatchState {
  const { id, processing_status: status, created_at, expires_at, ended_at } = batch
  const { processing, succeeded, errored, canceled, expired } = counts
  return {
    ...{ id, status, isEnded: status === 'ended' },
    total: processing + succeeded + errored + canceled + expired,
    outcomes: { succeeded, errored, canceled, expired },
    createdAt: new Date(created_at),
    expiresAt: new Date(expires_at),
    endedAt: ended_at === null ? undefined : new Date(ended_at),
    errors: [],
  }
}
