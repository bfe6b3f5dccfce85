/** Batches of the OpenAI API, whose requests and results are files. Shape: OpenAI API reference, "Batch" and "Files". */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { bytesOf, type Server, ServerError } from '../server.ts'
import { type BatchApi, type BatchState, notEnded, toChunks } from './batch-api.ts'
import type { RequestLine } from './request-lines.ts'

interface BatchObject {
  readonly id: string
  readonly status: string
  readonly errors: { readonly data: readonly FileProblem[] } | null
  readonly input_file_id: string
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly request_counts: Readonly<Record<'total' | 'completed' | 'failed', number>>
  readonly created_at: number
  readonly expires_at: number | null
  readonly completed_at: number | null
  readonly failed_at: number | null
  readonly expired_at: number | null
  readonly cancelled_at: number | null
}

interface FileProblem {
  readonly message: string
  readonly line: number | null
}

export const openaiApi: BatchApi = {
  submit: async (server, { name, endpoint }, lines) => {
    const boundary = `modelmount-${randomUUID()}`
    const form = toChunks(toForm(lines, name, boundary))
    const uploaded = await server.send('POST', '/v1/files', {
      body: Readable.toWeb(Readable.from(form)) as ReadableStream<Uint8Array>,
      contentType: `multipart/form-data; boundary=${boundary}`,
    })
    const { id: input_file_id } = (await uploaded.json()) as { readonly id: string }
    try {
      const body = { input_file_id, endpoint, completion_window: '24h' }
      return toState(await parse(server.send('POST', batchesPath, { body, contentType: 'application/json' })))
    } catch (cause) {
      await deleteFile(server, input_file_id).catch(() => {})
      throw cause
    }
  },
  get: async (server, id) => toState(await find(server, id)),
  list: async (server, limit, after) => {
    const query = new URLSearchParams({
      limit: `${Math.min(limit, maxPage)}`,
      ...(after !== undefined && { after }),
    })
    const { data, has_more: hasMore } = await server.get<{ data: BatchObject[]; has_more: boolean }>(
      `${batchesPath}?${query}`,
    )
    return { batches: data.map(toState), hasMore }
  },
  cancel: async (server, id) => toState(await parse(server.send('POST', `${pathOf(id)}/cancel`))),
  /** The API deletes files, but no batches. */
  delete: async (server, id) => {
    const batch = await findEnded(server, id)
    const { input_file_id, output_file_id, error_file_id } = batch
    for (const file of [input_file_id, output_file_id, error_file_id])
      if (file !== null) await deleteFile(server, file)
    return `the files of ${id}`
  },
  /** The succeeded requests come first. */
  results: async function* (server, id) {
    const { status, output_file_id, error_file_id } = await findEnded(server, id)
    if (status !== 'failed' && output_file_id === null && error_file_id === null)
      throw new Error(`The results of batch ${id} are no longer stored.`)
    for (const file of [output_file_id, error_file_id])
      if (file !== null) yield* bytesOf((await server.send('GET', `${fileOf(file)}/content`)).body)
  },
}

const batchesPath = '/v1/batches'
const maxPage = 100

const pathOf = (id: string): string => `${batchesPath}/${encodeURIComponent(id)}`
const fileOf = (id: string): string => `/v1/files/${encodeURIComponent(id)}`

const find = (server: Server, id: string): Promise<BatchObject> => server.get<BatchObject>(pathOf(id))

const parse = async (response: Promise<Response>): Promise<BatchObject> =>
  (await (await response).json()) as BatchObject

async function findEnded(server: Server, id: string): Promise<BatchObject> {
  const batch = await find(server, id)
  const state = toState(batch)
  if (!state.isEnded) throw notEnded(state)
  return batch
}

/** Accepts a file that is already deleted. */
async function deleteFile(server: Server, id: string): Promise<void> {
  await server.send('DELETE', fileOf(id)).catch((error: unknown) => {
    if (!(error instanceof ServerError && error.status === 404)) throw error
  })
}

/** Blank lines stay, because the server reports errors with the number of the line. */
async function* toForm(
  lines: AsyncIterable<RequestLine>,
  name: string,
  boundary: string,
): AsyncGenerator<string> {
  const filename = name.replaceAll(/["\r\n]/g, encodeURIComponent)
  yield `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n`
  yield `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${filename}"\r\n`
  yield 'content-type: application/jsonl\r\n\r\n'
  for await (const { text } of lines) yield `${text}\n`
  yield `\r\n--${boundary}--\r\n`
}

function toState(batch: BatchObject): BatchState {
  const { id, status, errors, created_at, expires_at, request_counts: counts } = batch
  const endedAt = batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at
  const { total, completed, failed } = counts
  return {
    ...{ id, status, isEnded: endedStatuses.includes(status), total },
    // The API does not count requests that did not run because of a cancellation.
    outcomes: { completed, failed, ...(status === 'cancelled' && { cancelled: total - completed - failed }) },
    createdAt: toDate(created_at),
    expiresAt: expires_at === null ? undefined : toDate(expires_at),
    endedAt: endedAt === null ? undefined : toDate(endedAt),
    errors:
      errors?.data.map(({ line, message }) => (line === null ? message : `line ${line}: ${message}`)) ?? [],
  }
}

const endedStatuses = ['completed', 'failed', 'expired', 'cancelled']

const toDate = (seconds: number): Date => new Date(seconds * 1_000)
