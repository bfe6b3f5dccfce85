/** One connection to SQLite in a thread, so that a long statement does not block the app. */
import { Worker } from 'node:worker_threads'
import { findPackageFile } from '../../util/package-file.ts'
import type { SqlValue } from '../database.ts'
import type { SqlRow } from './connection.ts'
import { FilesChanged, ThreadEnded } from './failures.ts'
import type { FileIds } from './files.ts'
import type { FailedResponse, OpenRequest, OpenResponse, SqliteRequest, SqliteResponse } from './messages.ts'

export class SqliteThread {
  /** The files that the thread has opened. Undefined for a database in memory. */
  readonly files: FileIds | undefined
  readonly #channel: WorkerChannel
  readonly #path: string
  #tail: Promise<unknown> = Promise.resolve()

  private constructor(channel: WorkerChannel, path: string, files: FileIds | undefined) {
    this.#channel = channel
    this.#path = path
    this.files = files
  }

  static async open(request: OpenRequest): Promise<SqliteThread> {
    const channel = new WorkerChannel(request)
    try {
      const response = (await channel.receive()) as OpenResponse
      if (response.type === 'failed') throw toError(response, request.path)
      return new SqliteThread(channel, request.path, response.files)
    } catch (cause) {
      await channel.end()
      throw cause
    }
  }

  /** Whether the thread has crashed or was closed. */
  get isEnded(): boolean {
    return this.#channel.isEnded
  }

  /**
   * Runs one statement after the others. Rejects with `ThreadEnded` if the thread ends meanwhile.
   *
   * @param transaction number of its transaction, which begins with its first statement
   */
  run(sql: string, parameters: readonly SqlValue[] = [], transaction?: number): Promise<readonly SqlRow[]> {
    return this.#enqueue(async () => {
      const first = await this.#request({ type: 'run', sql, parameters, transaction })
      if (first.type !== 'rows') throw new ThreadEnded('The SQLite thread returned no rows.')
      const rows = [...first.rows]
      for (let last = first; last.hasMore; ) {
        const next = await this.#request({ type: 'more' })
        if (next.type !== 'rows') break
        rows.push(...next.rows)
        last = next
      }
      return rows
    })
  }

  /** Ends a transaction without effect, even if the files of the database have changed. */
  async rollback(): Promise<void> {
    await this.#enqueue(() => this.#request({ type: 'rollback' }))
  }

  /** Writes the content of the `-wal` file to the database. */
  async checkpoint(): Promise<void> {
    await this.#enqueue(() => this.#request({ type: 'checkpoint' }))
  }

  /** Closes the connection after the queued statements. */
  close(): Promise<void> {
    return this.#enqueue(async () => {
      await this.#request({ type: 'close' }).catch(() => {})
      await this.#channel.end()
    })
  }

  #enqueue<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#tail.then(work)
    this.#tail = result.catch(() => {})
    return result
  }

  async #request(request: SqliteRequest): Promise<Exclude<SqliteResponse, FailedResponse>> {
    this.#channel.send(request)
    const response = (await this.#channel.receive()) as SqliteResponse
    if (response.type === 'failed') throw toError(response, this.#path)
    return response
  }
}

interface WaitingReceiver {
  resolve(message: unknown): void
  reject(cause: Error): void
}

/** The worker of a connection. It does not keep the app running, except while the app waits for a message. */
class WorkerChannel {
  readonly #worker: Worker
  #waiting: WaitingReceiver | undefined
  #failure: Error | undefined

  constructor(request: OpenRequest) {
    this.#worker = new Worker(findWorkerFile(), {
      name: 'modelmount-sqlite',
      workerData: request,
      // The flags and variables of the app could start its debugger or its tracing once more.
      execArgv: sqliteFlags(),
      env: {},
    })
    this.#worker.unref()
    this.#worker.on('message', (message) => this.#settle(({ resolve }) => resolve(message)))
    this.#worker.on('messageerror', (cause) => this.#fail(cause))
    this.#worker.on('error', (cause) => this.#fail(cause))
    this.#worker.on('exit', (code) => this.#fail(new Error(`The thread ended with exit code ${code}.`)))
  }

  get isEnded(): boolean {
    return this.#failure !== undefined
  }

  /** @throws a `DataCloneError` if a parameter of a statement is not a value of SQL */
  send(request: SqliteRequest): void {
    if (this.#failure) throw this.#failure
    this.#worker.postMessage(request)
  }

  /** Waits for the next message. Only one caller may wait at a time. */
  receive(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure)
      this.#waiting = { resolve, reject }
      this.#worker.ref()
    })
  }

  async end(): Promise<void> {
    this.#failure ??= new ThreadEnded('The SQLite thread was closed.')
    await this.#worker.terminate()
  }

  #fail(cause: Error): void {
    this.#failure ??= new ThreadEnded('The SQLite thread has ended.', { cause })
    const failure = this.#failure
    this.#settle(({ reject }) => reject(failure))
  }

  #settle(settle: (waiting: WaitingReceiver) => void): void {
    const waiting = this.#waiting
    if (!waiting) return
    this.#waiting = undefined
    this.#worker.unref()
    settle(waiting)
  }
}

function findWorkerFile(): string {
  // By the name of the package, because this module may be part of a bundle in another folder.
  const file = findPackageFile('@modelmount/core/sqlite-worker')
  if (file) return file
  throw new Error(
    'Cannot find @modelmount/core/sqlite-worker, in which SQLite runs. Install @modelmount/core beside the bundle.',
  )
}

/**
 * Flags for Node's own SQLite, which some versions of Node 22 lack without a flag, and which warns in each thread.
 */
const sqliteFlags = (): string[] =>
  ['--experimental-sqlite', '--disable-warning=ExperimentalWarning'].filter((flag) =>
    process.allowedNodeEnvironmentFlags.has(flag),
  )

function toError({ error, code, change }: FailedResponse, path: string): Error {
  if (change) return new FilesChanged(change.type, path, change.steps)
  return code === undefined ? error : Object.assign(error, { errcode: code })
}
