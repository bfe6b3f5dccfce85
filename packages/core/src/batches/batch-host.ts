/** Opens the batches of an app: at its start if their database exists, else with the first batch. */
import { existsSync } from 'node:fs'
import type { Caller } from '../accounts/auth/caller.ts'
import type { DataDeletion, DeletedCounts, TenantData } from '../accounts/tenants/tenant-data.ts'
import { invalidRequest, LlmError } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import type { BatchActions } from './batch-actions.ts'
import { createBatchClient } from './batch-client.ts'
import type { OpenedBatches } from './open-batches.ts'

export interface BatchHostParts {
  /** The database of the app. */
  readonly database: Database | undefined
  /** Path of a database for batches only, which takes precedence. */
  readonly path: string | undefined
  readonly openDatabase: (path: string) => Promise<Database>
  readonly openBatches: (database: Database) => Promise<OpenedBatches>
  readonly onError: (cause: unknown) => void
}

export class BatchHost implements TenantData {
  readonly #parts: BatchHostParts
  #opened: Promise<OpenedBatches> | undefined
  /** The database that this object has opened. */
  #own: Database | undefined
  #isClosed = false

  constructor(parts: BatchHostParts) {
    this.#parts = parts
  }

  /** Continues the batches of an earlier process. Without them, an app with a damaged `path` still answers calls. */
  async start(): Promise<void> {
    const { database, path, onError } = this.#parts
    if (path === undefined) {
      if (database) await this.#open()
    } else if (existsSync(path)) await this.#open().catch(onError)
  }

  /** Whether the database of batches is open, or being opened. */
  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  clientFor(caller: Caller | undefined): BatchActions {
    return createBatchClient(() => this.#open(), caller)
  }

  /** Stops the batches of a tenant whose calls are to be ended. */
  async hideTenant(tenant: string): Promise<void> {
    await (await this.#opened)?.data.hideTenant(tenant)
  }

  /** Deletes the batches and files of a tenant. */
  async deleteTenant(deletion: DataDeletion): Promise<DeletedCounts> {
    return (await this.#opened)?.data.deleteTenant(deletion) ?? {}
  }

  /** Gives the running items back, which other processes or a later start run. Never rejects. */
  async stop(): Promise<void> {
    await this.#opened?.then((batches) => batches.stop()).catch(this.#parts.onError)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await (await this.#opened?.catch(() => undefined))?.close()
    await this.#own?.close()
  }

  #open(): Promise<OpenedBatches> {
    if (this.#opened && !this.#isClosed) return this.#opened
    const opened = this.#openDatabase().then(this.#parts.openBatches)
    if (this.#isClosed) return opened
    this.#opened = opened
    // The next call tries again, such as when the disk was full.
    opened.catch(() => {
      this.#opened = undefined
    })
    return opened
  }

  async #openDatabase(): Promise<Database> {
    const { database, path, openDatabase } = this.#parts
    if (this.#isClosed) throw new LlmError('overloaded', 'The server is closing.', { retryAfterMs: 1_000 })
    if (path === undefined) {
      if (database) return database
      throw databaseRequired()
    }
    this.#own ??= await openDatabase(path)
    return this.#own
  }
}

const databaseRequired = () =>
  invalidRequest(
    'Batches and files need a database. In the app, set the option `database` of createLlm(), or `batches.database`.',
    { setup: true },
  )
