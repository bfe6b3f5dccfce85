/** Routes of files with the requests and the results of batches. Shape: OpenAI API reference, "Files". */
import { z } from 'zod'
import type { StoredFile } from '../../../batches/files/file.ts'
import { json } from '../../../http/respond.ts'
import { attachment } from '../../../http/streams.ts'
import { integerFrom, optional } from '../../fields.ts'
import { parse } from '../../parse.ts'
import { storageRoute } from '../../storage-route.ts'
import { formatIssue } from '../errors.ts'
import { parsePage, toList } from '../page.ts'
import { readUpload } from './upload.ts'

/** `POST /v1/files`: a form with the fields `file` and `purpose`, in any order. */
export const createFile = storageRoute(async ({ request, llm }) => {
  const file = await readUpload(request, ({ filename, content, whenComplete }) =>
    llm.batches.files.create(async () => toNewFile(filename, await whenComplete), content),
  )
  return json(toFileObject(file))
})

/** `GET /v1/files` */
export const listFiles = storageRoute(async ({ request, llm }) => {
  const { limit = maxFiles, after } = parsePage(request, maxFiles)
  const { order, purpose } = parse(
    z.object({ order: optional(z.enum(['asc', 'desc'])), purpose: optional(z.string()) }),
    { order: request.query('order'), purpose: request.query('purpose') },
    formatIssue,
  )
  const { files, hasMore } = await llm.batches.files.list({
    ...{ limit, after, purpose },
    isOldestFirst: order === 'asc',
  })
  return json(toList(files.map(toFileObject), hasMore))
})

/** `GET /v1/files/{id}` */
export const retrieveFile = storageRoute(async ({ request, llm }) =>
  json(toFileObject(await llm.batches.files.get(request.params.id ?? ''))),
)

/** `DELETE /v1/files/{id}` */
export const deleteFile = storageRoute(async ({ request, llm }) => {
  const { id = '' } = request.params
  await llm.batches.files.delete(id)
  return json({ id, object: 'file', deleted: true })
})

/** `GET /v1/files/{id}/content`. A browser does not show it: the bytes are those of the uploader. */
export const fileContent = storageRoute(async ({ request, llm, onError }) => {
  const { id = '' } = request.params
  const { filename } = await llm.batches.files.get(id)
  return attachment(await llm.batches.files.read(id), filename, { onError })
})

const maxFiles = 10_000

const FileFields = z.object({
  purpose: z.literal('batch', { error: "only 'batch' is supported." }),
  'expires_after[anchor]': z.literal('created_at', { error: "expected 'created_at'." }).optional(),
  'expires_after[seconds]': z
    .string()
    .transform((text) => (/^\d+$/.test(text) ? Number(text) : Number.NaN))
    .pipe(integerFrom(3_600, 2_592_000))
    .optional(),
})

function toNewFile(filename: string, fields: ReadonlyMap<string, string>) {
  const form = parse(FileFields, Object.fromEntries(fields), formatIssue)
  const { purpose, 'expires_after[seconds]': seconds } = form
  return { purpose, filename, ...(seconds !== undefined && { expiresAfterMs: seconds * 1_000 }) }
}

const toFileObject = ({ id, bytes, filename, purpose, createdAt, expiresAt }: StoredFile) => ({
  id,
  object: 'file',
  bytes,
  created_at: Math.floor(createdAt.getTime() / 1_000),
  ...(expiresAt && { expires_at: Math.floor(expiresAt.getTime() / 1_000) }),
  filename,
  purpose,
  status: 'processed',
  status_details: null,
})
