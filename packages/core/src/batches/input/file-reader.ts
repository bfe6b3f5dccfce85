/** Reads the items of a batch from its file, in the background. */
import { invalidRequest, LlmError } from '../../errors.ts'
import { parseJson } from '../../http/body.ts'
import type { BatchProblem } from '../batch.ts'
import type { BatchApi } from '../batch-api.ts'
import type { BatchApis } from '../batch-apis.ts'
import type { FileStore } from '../files/file-store.ts'
import { deleteInParts, itemsAtOnce } from '../running/lifecycle.ts'
import { type BatchRow, type BatchStoreParts, batchColumns } from '../store/batch-rows.ts'
import type { BatchStore } from '../store/batch-store.ts'
import { ItemWriter } from '../store/item-writer.ts'
import type { BatchQuotas } from '../store/quotas.ts'
import { freeCondition, type WorkerLease } from '../store/worker-lease.ts'
import { readLines } from './lines.ts'

export interface FileReaderParts extends BatchStoreParts {
  readonly store: BatchStore
  readonly files: FileStore
  readonly apis: BatchApis
  readonly lease: WorkerLease
  readonly quotas: BatchQuotas
  readonly maxItems: number
  readonly maxItemBytes: number
}

export class FileReader {
  readonly #parts: FileReaderParts
  readonly #closing = new AbortController()
  #running: Promise<void> | undefined

  constructor(parts: FileReaderParts) {
    this.#parts = parts
  }

  /**
   * Reads the files of all batches that wait for it, one after the other. Rejects if the database is unavailable. A
   * file whose reading has failed is read again by the next call.
   */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Another process, or a later start, reads an unfinished file again. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running?.catch(() => {})
  }

  async #run(): Promise<void> {
    const { lease } = this.#parts
    for (let isFound = true; isFound && !this.#closing.signal.aborted; )
      await lease.hold(async () => {
        const batch = await this.#claim()
        isFound = batch !== undefined
        if (batch) await this.#read(batch)
      })
  }

  async #claim(): Promise<BatchRow | undefined> {
    const { clock, database, lease } = this.#parts
    const [row] = await database.query<BatchRow>(
      `WITH next_batch AS MATERIALIZED
         (SELECT id FROM modelmount_batches WHERE status = 'validating' AND (worker = ? OR ${freeCondition('worker', clock())})
          ORDER BY created_at LIMIT 1 ${database.skipLocked})
       UPDATE modelmount_batches SET worker = ?, total = 0, remaining = 0, bytes = 0
       WHERE id IN (SELECT id FROM next_batch) RETURNING ${batchColumns}`,
      [lease.id, lease.id],
    )
    return row
  }

  async #read(row: BatchRow): Promise<void> {
    const { store, lease, onEvent } = this.#parts
    const { id, tenant } = row
    // Items that a process has written that was killed.
    await deleteInParts(this.#parts, 'modelmount_batch_items', 'batch', id, itemsAtOnce)
    const { problems, models } = await this.#write(row).catch((cause: unknown) => ({
      problems: toProblems(LlmError.from(cause)),
      models: [],
    }))
    if (this.#closing.signal.aborted) return
    if (problems.length === 0) {
      // A batch that is canceled or deleted meanwhile stays so.
      const published = await store.publish(id, lease.id, models).catch(ignoreConflict)
      if (published) onEvent({ type: 'start', batch: id, tenant, items: published.counts.processing })
      return
    }
    // The items of a canceled batch end as canceled.
    if (!(await store.fail(id, lease.id, problems))) return
    await deleteInParts(this.#parts, 'modelmount_batch_items', 'batch', id, itemsAtOnce)
  }

  /** Returns what is wrong with the file, and the models that it names. */
  async #write(row: BatchRow): Promise<WrittenFile> {
    const { files, apis, quotas, lease, maxItems, maxItemBytes } = this.#parts
    const api = await apis.of(row.api)
    const parse = api.createParser(row.endpoint)
    const writer = new ItemWriter(this.#parts, quotas, { batch: row.id, worker: lease.id })
    const file = await files.get(row.input_file ?? '', undefined)
    const problems: BatchProblem[] = []
    const written = { problems, models: writer.models }
    let index = 0
    for await (const { number, text } of readLines(files.read(file), maxItemBytes)) {
      if (this.#closing.signal.aborted) return written
      if (text === '') continue
      if (index === maxItems) throw invalidRequest(`The file has more than ${maxItems} requests.`)
      try {
        const item = parse(parseLine(text), index++)
        if (problems.length === 0) await writer.add(item)
      } catch (cause) {
        const error = LlmError.from(cause)
        if (error.code !== 'invalid_request') throw error
        problems.push(toProblem(api, error, number))
        if (problems.length === maxProblems) return written
      }
    }
    if (index === 0) throw invalidRequest('The file has no requests.')
    if (problems.length === 0) await writer.flush()
    return written
  }
}

interface WrittenFile {
  readonly problems: readonly BatchProblem[]
  readonly models: Iterable<string>
}

const maxProblems = 100

function parseLine(text: string): unknown {
  try {
    return parseJson(Buffer.from(text))
  } catch (cause) {
    const message = LlmError.from(cause).message.replace('The request body', 'This line')
    throw invalidRequest(message, { issue: 'type' })
  }
}

const toProblem = (api: BatchApi, error: LlmError, line: number): BatchProblem => api.toProblem(error, line)

/** A problem of the file as a whole. Errors that another attempt may not have are thrown. */
function toProblems(error: LlmError): readonly BatchProblem[] {
  if (error.code === 'conflict') return []
  if (error.code === 'unavailable' || error.code === 'internal') throw error
  return [{ code: error.code, message: error.message }]
}

function ignoreConflict(cause: unknown): undefined {
  if (!LlmError.is(cause) || cause.code !== 'conflict') throw cause
  return undefined
}
