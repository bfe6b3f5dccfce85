/** Stores files in the database, so that each process of the app can read them. */
import { nanoid } from 'nanoid'
import { LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import { type BatchDatabase, toKnownId } from '../store/batch-rows.ts'
import { type BatchQuotas, checkQuotas } from '../store/quotas.ts'
import type { WorkerLease } from '../store/worker-lease.ts'
import type { FilePage, FileQuery, NewFile, StoredFile } from './file.ts'

interface FileRow {
  readonly id: string
  readonly purpose: string
  readonly filename: string
  readonly bytes: number
  readonly created_at: number
  readonly expires_at: number | null
  readonly batch: string | null
  readonly kind: 'output' | 'error' | null
}

const columns = 'id, purpose, filename, bytes, created_at, expires_at, batch, kind'

/** A file, and for a result file, where its content is. */
export interface FoundFile extends StoredFile {
  readonly results?: { readonly batch: string; readonly kind: 'output' | 'error' }
}

export class FileStore {
  readonly #parts: BatchDatabase
  readonly #quotas: BatchQuotas
  readonly #lease: WorkerLease

  constructor(parts: BatchDatabase, quotas: BatchQuotas, lease: WorkerLease) {
    this.#parts = parts
    this.#quotas = quotas
    this.#lease = lease
  }

  /**
   * Stores a file chunk by chunk. It is visible when it is complete. Rejects with the error of `content` or `settings`,
   * with `too_large`, or with the errors of `checkQuotas`. What was stored is then deleted.
   *
   * @param settings called when the content is stored
   */
  create(
    tenant: string,
    settings: () => Promise<NewFile>,
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
  ): Promise<StoredFile> {
    const { clock, database } = this.#parts
    const id = `file-${nanoid()}`
    return this.#lease.hold(async () => {
      await database.query(
        `INSERT INTO modelmount_files (id, tenant, purpose, filename, status, worker, created_at)
         VALUES (?, ?, '', '', 'uploading', ?, ${clock()})`,
        [id, toStorableId(tenant), this.#lease.id],
      )
      try {
        await this.#write(id, content, maxBytes)
        const { purpose, filename, expiresAfterMs } = await settings()
        const [row] = await database.query<FileRow>(
          `UPDATE modelmount_files SET status = 'processed', worker = NULL, purpose = ?, filename = ?,
             expires_at = created_at + ? WHERE id = ? AND status = 'uploading' RETURNING ${columns}`,
          [toStorableText(purpose), toStorableText(filename), expiresAfterMs, id],
        )
        if (!row) throw uploadDeleted()
        return toFile(row)
      } catch (cause) {
        await this.#hide(id).catch(() => {}) // Without the lease, the upload is deleted, too.
        throw cause
      }
    })
  }

  /** Rejects with an `LlmError` `not_found`. */
  async get(id: string, tenant: string | undefined): Promise<FoundFile> {
    const [row] = await this.#parts.database.query<FileRow>(
      `SELECT ${columns} FROM modelmount_files WHERE id = ? AND status = 'processed'
       ${tenant === undefined ? '' : 'AND tenant = ?'}`,
      [toKnownId(id), ...(tenant === undefined ? [] : [toStorableId(tenant)])],
    )
    if (!row) throw fileNotFound(id)
    return toFile(row)
  }

  async list(
    tenant: string | undefined,
    { purpose, limit, after, isOldestFirst = false }: FileQuery,
  ): Promise<FilePage> {
    const last = after === undefined ? undefined : await this.get(after, tenant)
    const conditions = [
      { sql: `status = 'processed'`, values: [] },
      ...(tenant === undefined ? [] : [{ sql: 'tenant = ?', values: [toStorableId(tenant)] }]),
      ...(purpose === undefined ? [] : [{ sql: 'purpose = ?', values: [toStorableText(purpose)] }]),
      ...(last
        ? [
            {
              sql: `(created_at, id) ${isOldestFirst ? '>' : '<'} (?, ?)`,
              values: [last.createdAt.getTime(), last.id],
            },
          ]
        : []),
    ]
    const rows = await this.#parts.database.query<FileRow>(
      `SELECT ${columns} FROM modelmount_files WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}
       ORDER BY ${isOldestFirst ? 'created_at, id' : 'created_at DESC, id DESC'} LIMIT ?`,
      [...conditions.flatMap(({ values }): readonly (string | number)[] => values), limit + 1],
    )
    return { files: rows.slice(0, limit).map(toFile), hasMore: rows.length > limit }
  }

  /** The content is deleted in the background. Rejects with `not_found`. */
  async delete(id: string, tenant: string | undefined): Promise<void> {
    await this.get(id, tenant)
    await this.#hide(id)
  }

  /** Yields the content of an uploaded file. Throws an `LlmError` `not_found` if it is deleted meanwhile. */
  async *read({ id, bytes }: Pick<StoredFile, 'id' | 'bytes'>): AsyncGenerator<Uint8Array> {
    let left = bytes
    for (let number = 0; left > 0; number++) {
      const [row] = await this.#parts.database.query<{ data: Uint8Array }>(
        'SELECT data FROM modelmount_file_chunks WHERE file = ? AND number = ?',
        [id, number],
      )
      if (!row) throw fileNotFound(id)
      left -= row.data.length
      yield row.data
    }
  }

  async #write(id: string, content: AsyncIterable<Uint8Array>, maxBytes: number): Promise<void> {
    let total = 0
    let number = 0
    for await (const chunk of inChunks(content)) {
      total += chunk.length
      if (total > maxBytes) throw fileTooLarge(maxBytes)
      const index = number++
      await this.#parts.database.transaction(async (queries) => {
        const [row] = await queries.query<{ tenant: string }>(
          `UPDATE modelmount_files SET bytes = bytes + ? WHERE id = ? AND status = 'uploading' RETURNING tenant`,
          [chunk.length, id],
        )
        if (!row) throw uploadDeleted()
        await checkQuotas(queries, row.tenant, this.#quotas)
        await queries.query('INSERT INTO modelmount_file_chunks (file, number, data) VALUES (?, ?, ?)', [
          id,
          index,
          chunk,
        ])
      })
    }
  }

  async #hide(id: string): Promise<void> {
    await this.#parts.database.query(
      `UPDATE modelmount_files SET status = 'hidden', worker = NULL WHERE id = ?`,
      [toKnownId(id)],
    )
  }
}

function toFile({ id, purpose, filename, bytes, created_at, expires_at, batch, kind }: FileRow): FoundFile {
  return {
    ...{ id, purpose, filename, bytes },
    createdAt: new Date(created_at),
    ...(expires_at !== null && { expiresAt: new Date(expires_at) }),
    ...(batch !== null && kind !== null && { results: { batch, kind } }),
  }
}

/** Yields chunks of equal size, which are rows in the database. */
async function* inChunks(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of content) {
    for (let from = 0; from < piece.length; ) {
      const part = piece.subarray(from, from + chunkBytes - length)
      pieces.push(part)
      length += part.length
      from += part.length
      if (length < chunkBytes) continue
      yield Buffer.concat(pieces)
      pieces = []
      length = 0
    }
  }
  if (length > 0) yield Buffer.concat(pieces)
}

const chunkBytes = 256 * 1024
const maxTextLength = 500

const toStorableText = (text: string): string =>
  text.slice(0, maxTextLength).toWellFormed().replaceAll('\0', '')

const fileTooLarge = (maxBytes: number): LlmError =>
  new LlmError('too_large', `The file is larger than ${maxBytes} bytes.`)

const uploadDeleted = (): LlmError =>
  new LlmError('conflict', 'The file was deleted before its upload was complete.')

export const fileNotFound = (id: string): LlmError =>
  new LlmError('not_found', `No such File object: ${id.slice(0, 100).toWellFormed()}`, { param: 'id' })
