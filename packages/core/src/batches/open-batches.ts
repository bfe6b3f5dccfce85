/** Opens the batches of a database: creates them, runs their items, and brings them to their end. */
import { setTimeout as delay } from 'node:timers/promises'
import { nanoid } from 'nanoid'
import { type Caller, tenantOf } from '../accounts/auth/caller.ts'
import { usageTables } from '../accounts/usage/tables.ts'
import { invalidRequest } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { migrate } from '../storage/migrations.ts'
import type { Batch, BatchFormat, CreateBatchOptions } from './batch.ts'
import type { BatchApi } from './batch-api.ts'
import { BatchApis } from './batch-apis.ts'
import { BatchData } from './batch-data.ts'
import type { BatchEvent } from './batch-event.ts'
import { FileStore } from './files/file-store.ts'
import { FileReader } from './input/file-reader.ts'
import { readJsonRequests } from './input/json-requests.ts'
import { Lifecycle } from './running/lifecycle.ts'
import { BatchWorker, type WorkerParts } from './running/worker.ts'
import { BatchStore } from './store/batch-store.ts'
import { ItemQueue } from './store/item-queue.ts'
import { ItemWriter } from './store/item-writer.ts'
import type { BatchQuotas } from './store/quotas.ts'
import { deleteExpiredWorkers, WorkerLease } from './store/worker-lease.ts'
import { batchTables } from './tables.ts'

export interface ResolvedBatchOptions extends BatchQuotas {
  /** Whether this process runs items. */
  readonly run: boolean
  /** How many items this process runs at once. */
  readonly concurrency: number
  readonly expiresAfterMs: number
  /** `Infinity` if results are kept forever. */
  readonly retentionMs: number
  readonly fileRetentionMs: number
  /** Size of the body that creates a batch, and of a file. */
  readonly maxBatchBytes: number
  /** Requests of one batch. */
  readonly maxItems: number
}

export interface OpenBatchesOptions extends Pick<WorkerParts, 'resolveCaller' | 'clientFor' | 'onError'> {
  readonly onEvent: (event: BatchEvent) => void
  readonly options: ResolvedBatchOptions
  /** Loads the APIs that have batches, with the first batch. */
  readonly loadApis: () => Promise<readonly BatchApi[]>
  /** For tests: SQL expression of the current time in milliseconds. @default the clock of the database */
  readonly clock?: (() => string) | undefined
}

export async function openBatches(database: Database, given: OpenBatchesOptions): Promise<OpenedBatches> {
  // The clock of the retention is in a table of the usage.
  await migrate(database, 'usage', usageTables)
  await migrate(database, 'batches', batchTables)
  return new OpenedBatches(database, given)
}

export class OpenedBatches {
  readonly options: ResolvedBatchOptions
  readonly store: BatchStore
  readonly files: FileStore
  readonly apis: BatchApis
  /** Deletes what tenants have stored. */
  readonly data: BatchData
  readonly #database: Database
  readonly #clock: () => string
  readonly #lease: WorkerLease
  readonly #queue: ItemQueue
  readonly #worker: BatchWorker
  readonly #reader: FileReader
  readonly #lifecycle: Lifecycle
  readonly #onError: (cause: unknown) => void
  readonly #onEvent: OpenBatchesOptions['onEvent']
  #timer: NodeJS.Timeout | undefined
  readonly #seldomTimer: NodeJS.Timeout
  /** The current look for work, and whether another one follows. */
  #looking: Promise<void> | undefined
  #isLookDue = false
  #isClosed = false

  constructor(database: Database, { options, loadApis, clock, ...given }: OpenBatchesOptions) {
    const { onError, onEvent } = given
    const parts = { database, clock: clock ?? (() => database.clock), onEvent }
    this.#onEvent = onEvent
    this.options = options
    this.#database = database
    this.#clock = parts.clock
    this.#onError = onError
    this.apis = new BatchApis(loadApis)
    this.store = new BatchStore(parts)
    this.data = new BatchData(parts)
    this.#lease = new WorkerLease(database, parts.clock, onError)
    this.#queue = new ItemQueue(parts, options, this.#lease.id)
    this.files = new FileStore(parts, options, this.#lease)
    const { store, files, apis } = this
    this.#reader = new FileReader({
      ...{ ...parts, store, files, apis, lease: this.#lease, quotas: options },
      ...{ maxItems: options.maxItems, maxItemBytes },
    })
    this.#worker = new BatchWorker({
      ...given,
      ...{ queue: this.#queue, apis, lease: this.#lease, concurrency: options.concurrency },
    })
    this.#lifecycle = new Lifecycle(parts, store, apis, { retentionMs: options.retentionMs, onError })
    this.#seldomTimer = setInterval(() => void this.#runSeldom(), seldomMs).unref()
    this.wake()
    void this.#runSeldom()
  }

  /** Creates a batch of requests, and stores them as they come. Rejects like `BatchActions.create`. */
  async create(
    requests: Iterable<unknown> | AsyncIterable<unknown>,
    caller: Caller | undefined,
    given: CreateBatchOptions,
  ): Promise<Batch> {
    const { signal } = given
    const { api, newBatch } = await this.#prepare(caller, given)
    const batch = await this.#lease.hold(async () => {
      const { id } = await this.store.create(newBatch, this.#lease.id)
      try {
        const owner = { batch: id, worker: this.#lease.id }
        const writer = new ItemWriter({ database: this.#database, clock: this.#clock }, this.options, owner)
        const parse = api.createParser(newBatch.endpoint)
        for await (const request of requests) {
          signal?.throwIfAborted()
          if (writer.count === this.options.maxItems) throw tooManyRequests(this.options.maxItems)
          await writer.add(parse(request, writer.count))
        }
        if (writer.count === 0) throw noRequests()
        await writer.flush()
        signal?.throwIfAborted()
        const published = await this.store.publish(id, this.#lease.id, writer.models)
        this.#onCreated(published, caller, writer.count)
        this.#onEvent({ type: 'start', batch: id, tenant: tenantOf(caller), items: writer.count })
        return published
      } catch (cause) {
        // The batch may have been published, although the database did not confirm it.
        await this.#hide(id)
        throw cause
      }
    })
    this.wake()
    return batch
  }

  /** Creates a batch of the list `requests` in a JSON object. */
  createFromJson(
    body: AsyncIterable<Uint8Array>,
    caller: Caller | undefined,
    given: CreateBatchOptions,
  ): Promise<Batch> {
    const { maxBatchBytes: maxBytes } = this.options
    return this.create(readJsonRequests(body, { maxBytes, maxItemBytes }), caller, given)
  }

  /** Creates a batch whose requests are in a file. */
  async createFromFile(
    inputFileId: string,
    caller: Caller | undefined,
    given: CreateBatchOptions,
  ): Promise<Batch> {
    const { newBatch } = await this.#prepare(caller, given)
    const batch = await this.store.create({ ...newBatch, inputFileId }, undefined)
    this.#onCreated(batch, caller, undefined)
    this.wake()
    return batch
  }

  #onCreated({ id, format, endpoint }: Batch, caller: Caller | undefined, items: number | undefined): void {
    const tenant = tenantOf(caller)
    this.#onEvent({ type: 'create', batch: id, tenant, caller: caller?.id, format, endpoint, items })
  }

  /** Deletes a batch whose client gets an error. Tries again in the background while the database is unavailable. */
  async #hide(id: string): Promise<void> {
    const hide = (): Promise<boolean> =>
      this.store.hide(id).then(
        () => true,
        () => false,
      )
    if (!(await hide()))
      void (async () => {
        for (let attempt = 0; attempt < hideAttempts && !this.#isClosed; attempt++) {
          await delay(hidePauseMs, undefined, { ref: false })
          if (await hide()) return
        }
      })()
    this.wake()
  }

  /** Looks for work now. */
  wake(): void {
    this.#isLookDue = true
    clearTimeout(this.#timer)
    this.#looking ??= this.#look()
      .catch((cause: unknown) => {
        this.#onError(cause)
        return true
      })
      .then((isOpen) => {
        this.#looking = undefined
        if (this.#isClosed) return
        if (this.#isLookDue) return this.wake()
        this.#timer = setTimeout(() => this.wake(), isOpen ? lookEveryMs.open : lookEveryMs.idle).unref()
      })
  }

  /** Ends the running items, which run again later. Batches can still be created and read. */
  async stop(): Promise<void> {
    await Promise.all([this.#reader.close(), this.#worker.close()])
  }

  /** Ends the running items, which run again later. The database stays open. */
  async close(): Promise<void> {
    this.#isClosed = this.#lifecycle.isClosed = true
    clearTimeout(this.#timer)
    clearInterval(this.#seldomTimer)
    await this.stop()
    await this.#looking
    clearTimeout(this.#timer)
    this.#lease.close()
  }

  async #prepare(
    caller: Caller | undefined,
    { format = 'anthropic', endpoint, metadata }: CreateBatchOptions,
  ) {
    const api = await this.apis.of(format)
    if (!api) throw unknownFormat(format)
    const { idPrefix, endpoints, hasResultFiles } = api
    const [first = ''] = endpoints
    if (endpoint !== undefined && !endpoints.includes(endpoint)) throw unknownEndpoint(endpoints)
    checkMetadata(metadata)
    const { expiresAfterMs } = this.options
    const newBatch = {
      ...{ id: `${idPrefix}_${nanoid()}`, format, endpoint: endpoint ?? first, caller, expiresAfterMs },
      ...{ metadata, hasResultFiles },
    }
    return { api, newBatch }
  }

  /** Returns whether there are batches that have not ended. */
  async #look(): Promise<boolean> {
    // Requests that arrive together are looked at together.
    await delay(0)
    this.#isLookDue = false
    if (this.#isClosed || !(await this.#lifecycle.runOften())) return false
    await this.#queue.reclaim()
    if (!this.options.run || this.#isClosed) return true
    // A large file does not keep the items of other batches waiting.
    void this.#reader.run().then(() => this.#worker.fill(), this.#onError)
    await this.#worker.fill()
    return true
  }

  async #runSeldom(): Promise<void> {
    try {
      await this.#lifecycle.runSeldom()
      await deleteExpiredWorkers(this.#database, this.#clock())
    } catch (cause) {
      if (!this.#isClosed) this.#onError(cause)
    }
  }
}

/** Size of one request, as of the body of other routes. */
const maxItemBytes = 32 * 1024 * 1024
const lookEveryMs = { open: 1_000, idle: 3_000 }
const seldomMs = 600_000
const hideAttempts = 60
const hidePauseMs = 1_000

const tooManyRequests = (max: number) =>
  invalidRequest(`requests: A batch can have at most ${max} requests.`, { param: 'requests' })

const noRequests = () => invalidRequest('requests: Expected at least one request.', { param: 'requests' })

const unknownFormat = (format: BatchFormat) =>
  invalidRequest(`format: Expected 'anthropic' or 'openai', got '${String(format)}'.`, { param: 'format' })

/** The same limits as in OpenAI's API, for batches that the app creates. */
function checkMetadata(metadata: CreateBatchOptions['metadata'] = {}): void {
  const entries = Object.entries(metadata)
  const isValid = ([key, value]: readonly [string, unknown]): boolean =>
    key.length <= 64 && typeof value === 'string' && value.length <= 512
  if (typeof metadata !== 'object' || entries.length > 16 || !entries.every(isValid))
    throw invalidRequest(
      'metadata: Expected an object of up to 16 texts, with keys of up to 64 and values of up to 512 characters.',
      { param: 'metadata' },
    )
}

const unknownEndpoint = (endpoints: readonly string[]) =>
  invalidRequest(`endpoint: Expected one of ${endpoints.join(', ')}.`, { param: 'endpoint' })
