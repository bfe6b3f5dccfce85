/**
 * SQLite in threads. One thread runs all writes and transactions, one after the other. Others run the statements
 * that only read, so that these wait neither for a transaction nor for a report.
 */
import { resolve } from 'node:path'
import {
  type Database,
  databaseUnavailable,
  type Queries,
  type QueryOptions,
  reasonOf,
  type SqlValue,
  type TransactionOptions,
  UncertainOutcome,
} from './database.ts'
import { retryOnConflict } from './retry-on-conflict.ts'
import { SlowQueries } from './slow-queries.ts'
import { FilesChanged, isBusy, isTransactionEnded, ThreadEnded, toUnavailable } from './sqlite/failures.ts'
import { createPrivateFile } from './sqlite/files.ts'
import type { ReplacedFile } from './sqlite/messages.ts'
import { SqliteReaders } from './sqlite/readers.ts'
import { SqliteThread } from './sqlite/thread.ts'

/** Logs that the files of a database are lost, replaced or back. */
export type DatabaseLog = (details: object, message: string) => void

/** @param path a file on a local disk, which is created if it is missing, or `:memory:` */
export async function openSqlite(path: string, log: DatabaseLog = () => {}): Promise<Database> {
  if (path === inMemory) return new Sqlite(path, await openFile(path), log)
  const absolutePath = resolve(path)
  createPrivateFile(absolutePath)
  return new Sqlite(absolutePath, await openFile(absolutePath), log)
}

const inMemory = ':memory:'
/** How often an unused database is checked for lost files. */
const checkEveryMs = 20_000

const maxQueuedWrites = 1_000
/** How long a write may wait for its turn, in ms. */
const maxWaitMs = 5_000
/** A write retries for this time even if it has waited for long, in ms. */
const minRetryMs = 1_000

/** The threads of one opened file. */
interface OpenedFile {
  readonly writer: SqliteThread
  /** Absent in memory, where a database has one connection. */
  readonly readers: SqliteReaders | undefined
}

async function openFile(path: string, replaced?: ReplacedFile): Promise<OpenedFile> {
  const writer = await SqliteThread.open({ path, isReader: false, replaced })
  const openReader = () => SqliteThread.open({ path, isReader: true, expected: writer.files })
  return { writer, readers: path === inMemory ? undefined : new SqliteReaders(openReader) }
}

async function closeFile({ writer, readers }: OpenedFile): Promise<void> {
  await readers?.close()
  await writer.close()
}

class Sqlite implements Database {
  readonly clock = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`
  readonly skipLocked = ''
  readonly #path: string
  readonly #log: DatabaseLog
  #file: OpenedFile
  #repairing: Promise<void> | undefined
  /** The last logged problem, until it is over. */
  #problem: string | undefined
  /** The last queued write. */
  #tail: Promise<unknown> = Promise.resolve()
  #queuedWrites = 0
  #transactions = 0
  readonly #slowQueries = new SlowQueries()
  readonly #timer: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined
  #isClosed = false

  constructor(path: string, file: OpenedFile, log: DatabaseLog) {
    this.#path = path
    this.#file = file
    this.#log = log
    if (path !== inMemory) this.#timer = setInterval(() => this.#check(), checkEveryMs).unref()
  }

  query<Row extends object>(
    sql: string,
    parameters: readonly SqlValue[] = [],
    { isSlow = false }: QueryOptions = {},
  ): Promise<readonly Row[]> {
    const isRead = this.#file.readers !== undefined && /^\s*SELECT\b/i.test(sql)
    const run = () => (isRead ? this.#read(sql, parameters, isSlow) : this.#write(sql, parameters))
    const rows = isSlow ? this.#slowQueries.run(run) : run()
    return rows as Promise<readonly object[]> as Promise<readonly Row[]>
  }

  transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    { exclusive: isExclusive = false }: TransactionOptions = {},
  ): Promise<Result> {
    const run = async (queries: Queries) => {
      // Begins the transaction before the work.
      if (isExclusive) await queries.query('SELECT 1')
      return work(queries)
    }
    return this.#enqueue((deadline) =>
      this.#withFile(({ writer }) =>
        retryOnConflict(
          () => runTransaction({ writer, number: ++this.#transactions, deadline }, run),
          isTransactionEnded,
          deadline,
        ),
      ),
    )
  }

  close(): Promise<void> {
    if (this.#closing) return this.#closing
    clearInterval(this.#timer)
    this.#closing = this.#tail.then(async () => {
      // From now on, no repair begins.
      this.#isClosed = true
      await this.#repairing?.catch(() => {})
      await closeFile(this.#file)
    })
    return this.#closing
  }

  #read(sql: string, parameters: readonly SqlValue[], isSlow: boolean) {
    if (this.#closing) return Promise.reject(databaseClosed())
    // A read can be repeated in another thread.
    const isConflict = (error: unknown) => isBusy(error) || (error instanceof ThreadEnded && !this.#isClosed)
    return this.#withFile(() =>
      retryOnConflict(
        async () => (await this.#file.readers?.query(sql, parameters, isSlow)) ?? [],
        isConflict,
      ),
    )
  }

  #write(sql: string, parameters: readonly SqlValue[] = []) {
    return this.#enqueue((deadline) =>
      this.#withFile(({ writer }) => retryOnConflict(() => writer.run(sql, parameters), isBusy, deadline)),
    )
  }

  /**
   * Runs one piece of work after the other. Work that has waited for too long is rejected without an attempt, so
   * that callers get a 503 within seconds while another process holds the lock.
   */
  #enqueue<Result>(work: (deadline: number) => Promise<Result>): Promise<Result> {
    if (this.#closing) return Promise.reject(databaseClosed())
    if (this.#queuedWrites >= maxQueuedWrites)
      return Promise.reject(databaseUnavailable(new Error(`${maxQueuedWrites} writes are queued already.`)))
    this.#queuedWrites++
    const waitDeadline = performance.now() + maxWaitMs
    const result = this.#tail.then(() => {
      this.#queuedWrites--
      const now = performance.now()
      if (now > waitDeadline)
        throw databaseUnavailable(new Error(`A write has waited for others for ${maxWaitMs} ms.`))
      return work(Math.max(waitDeadline, now + minRetryMs))
    })
    this.#tail = result.catch(() => {})
    return result
  }

  /** Notices lost files while nothing else uses the database. Their loss is logged. */
  #check(): void {
    this.#write('SELECT 1').catch(() => {})
  }

  /** Runs work that can run again if the files turn out to have changed, because then it has changed nothing. */
  async #withFile<Result>(work: (file: OpenedFile) => Promise<Result>): Promise<Result> {
    const problem = this.#problem
    try {
      if (this.#file.writer.isEnded) await this.#repair(this.#file, threadEnded())
      const file = this.#file
      const result = await work(file).catch(async (error: unknown) => {
        if (!(error instanceof FilesChanged)) throw error
        await this.#repair(file, error)
        return work(this.#file)
      })
      // Work that began before the problem proves nothing.
      if (problem === this.#problem) this.#noteRecovery()
      return result
    } catch (error) {
      throw toUnavailable(error)
    }
  }

  /** Opens the database again, once for all that fail at the same time. */
  async #repair(file: OpenedFile, cause: Error): Promise<void> {
    if (file !== this.#file) return
    if (this.#isClosed) throw databaseClosed()
    this.#repairing ??= this.#reopen(file, cause).finally(() => {
      this.#repairing = undefined
    })
    await this.#repairing
  }

  async #reopen(file: OpenedFile, cause: Error): Promise<void> {
    try {
      this.#file = await openAgain(this.#path, file, cause)
    } catch (error) {
      const { message } = error as Error
      if (message !== this.#problem)
        this.#log({ path: this.#path, err: error }, 'The database is unavailable')
      this.#problem = message
      throw databaseUnavailable(error)
    }
    if (cause instanceof FilesChanged && cause.change === 'replaced')
      this.#log({ path: this.#path, err: cause }, 'The database file was replaced')
    this.#problem ??= cause.message
    this.#noteRecovery(cause)
  }

  #noteRecovery(cause?: Error): void {
    if (this.#problem === undefined) return
    this.#problem = undefined
    this.#log({ path: this.#path, ...(cause && { err: cause }) }, 'The database is available again')
  }
}

async function openAgain(path: string, file: OpenedFile, cause: Error): Promise<OpenedFile> {
  if (path === inMemory) throw threadEnded('The database was in its memory.')
  const { files } = file.writer
  const change = cause instanceof FilesChanged ? cause : undefined
  if (change?.change === 'missing') throw change
  if (change?.change === 'replaced' && files) {
    // The old file stays open until then, so that no new file can get its inode number.
    const opened = await openFile(path, { files, steps: await stepsOf(file.writer, change) })
    void closeFile(file)
    return opened
  }
  // Saves what is only in a deleted `-wal` file.
  if (change) await file.writer.checkpoint().catch(() => {})
  await closeFile(file)
  return openFile(path)
}

/** The steps of a replaced file. A reader that opens after the change has no connection to the old file. */
async function stepsOf(writer: SqliteThread, change: FilesChanged): Promise<readonly string[]> {
  const error: unknown = await writer.run('SELECT 1', []).catch((cause: unknown) => cause)
  return error instanceof FilesChanged ? error.steps : change.steps
}

interface OpenTransaction {
  readonly writer: SqliteThread
  /** Another one for each transaction of the writer. */
  readonly number: number
  /** When its first statement stops retrying, by `performance.now()`. */
  readonly deadline: number
}

async function runTransaction<Result>(
  { writer, number, deadline }: OpenTransaction,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  let hasBegun = false
  let isOver = false
  const queries: Queries = {
    query: async <Row extends object>(sql: string, parameters: readonly SqlValue[] = []) => {
      if (isOver) throw new Error('The transaction is over.')
      hasBegun = true
      const run = () => writer.run(sql, parameters, number)
      const rows = await retryOnConflict(run, isBusy, deadline).catch(throwUnavailable)
      return rows as readonly object[] as readonly Row[]
    },
  }
  try {
    const result = await work(queries)
    // Before the commit: a later query would run outside of the transaction.
    isOver = true
    if (hasBegun) await writer.run('COMMIT', [], number).catch(throwCommitError)
    return result
  } catch (error) {
    isOver = true
    // Without the thread, its connection is closed, and nothing is committed.
    await writer.rollback().catch(() => writer.close())
    const reason = reasonOf(error)
    // The transaction has changed nothing, so that it can be repeated.
    throw reason instanceof FilesChanged || isTransactionEnded(reason) ? reason : error
  }
}

/** Rethrows the error, except if the thread has ended: then the commit may have succeeded. */
function throwCommitError(cause: unknown): never {
  if (!(cause instanceof ThreadEnded)) throw toUnavailable(cause)
  throw new UncertainOutcome('SQLite did not confirm the commit of a transaction.', { cause })
}

function throwUnavailable(cause: unknown): never {
  throw toUnavailable(cause)
}

const threadEnded = (consequence = ''): Error =>
  new ThreadEnded(`The thread of the database has ended. ${consequence}`.trim())

const databaseClosed = (): Error => databaseUnavailable(new Error('The database is closed.'))
