/** Entry file of the threads that run SQLite. Each of them has one connection. */
import { parentPort, workerData } from 'node:worker_threads'
import { type Connection, connect, type SqlRow } from './connection.ts'
import { FilesChanged, transactionEnded } from './failures.ts'
import { type FileIds, findChange, identifyFiles, resolveLinks } from './files.ts'
import type { FailedResponse, OpenRequest, OpenResponse, SqliteRequest, SqliteResponse } from './messages.ts'

/**
 * Rows per response. The app's thread asks for the next rows when it has read these, so that no response blocks
 * its event loop for long.
 */
const rowsPerResponse = 500

/** How long a transaction may have no statement, in ms: until its end, no other process can write. */
const maxIdleMs = 4_000

class SqliteServer {
  /** The opened files. Undefined for a database in memory. */
  readonly files: FileIds | undefined
  readonly #path: string
  readonly #connection: Connection
  /** Rows of the last statement that the app has not asked for yet. */
  #rows: readonly SqlRow[] = []
  #sent = 0
  /** The number of the last transaction. */
  #transaction: number | undefined
  #idleTimer: NodeJS.Timeout | undefined

  constructor(path: string, connection: Connection, files: FileIds | undefined) {
    this.#path = path
    this.#connection = connection
    this.files = files
  }

  respond(request: SqliteRequest): SqliteResponse {
    clearTimeout(this.#idleTimer)
    try {
      return this.#respond(request)
    } finally {
      if (request.type === 'run' && this.#connection.isTransaction)
        this.#idleTimer = setTimeout(() => this.#connection.rollback(), maxIdleMs)
    }
  }

  #respond(request: SqliteRequest): SqliteResponse {
    switch (request.type) {
      case 'run': {
        this.#expectSameFiles()
        if (request.transaction !== undefined) this.#enter(request.transaction)
        this.#rows = this.#connection.run(request.sql, request.parameters)
        this.#sent = 0
        return this.#nextRows()
      }
      case 'more':
        return this.#nextRows()
      case 'rollback':
        this.#connection.rollback()
        return { type: 'done' }
      case 'checkpoint':
        this.#connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
        return { type: 'done' }
      case 'close':
        this.#connection.close()
        return { type: 'done' }
    }
  }

  /** Takes the write lock at once: a transaction that reads first could not write once another process has. */
  #enter(transaction: number): void {
    if (transaction === this.#transaction) {
      if (!this.#connection.isTransaction) throw transactionEnded()
      return
    }
    this.#connection.run('BEGIN IMMEDIATE')
    this.#transaction = transaction
  }

  #nextRows(): SqliteResponse {
    const rows = this.#rows.slice(this.#sent, this.#sent + rowsPerResponse)
    this.#sent += rows.length
    const hasMore = this.#sent < this.#rows.length
    if (!hasMore) this.#rows = []
    return { type: 'rows', rows, hasMore }
  }

  #expectSameFiles(): void {
    const change = this.files && findChange(this.files, identifyFiles(this.#path))
    if (!change) return
    throw new FilesChanged(change, this.#path, change === 'replaced' ? listSteps(this.#connection) : [])
  }
}

async function open({ path, isReader, expected, replaced }: OpenRequest): Promise<SqliteServer> {
  if (path === ':memory:') return new SqliteServer(path, await connect(path, isReader), undefined)
  const found = identifyFiles(path)
  if (found.database === undefined) throw new FilesChanged('missing', path)
  const checkFile = () => {
    const opened = identifyFiles(path)
    if (replaced) expectOwnLog(path, opened, replaced.files)
    expectSame(path, expected ?? { ...opened, database: found.database }, opened)
  }
  const connection = await connect(path, isReader, checkFile).catch((cause: unknown) => {
    throw identifyFiles(path).database === undefined ? new FilesChanged('missing', path) : cause
  })
  const files = identifyFiles(path)
  expectSame(path, expected ?? { ...files, database: found.database }, files)
  if (replaced && replaced.steps.join() !== listSteps(connection).join())
    throw new Error(
      `The database file ${path} was replaced by one of another schema version. Restart the app, which upgrades older ones.`,
    )
  return new SqliteServer(path, connection, files)
}

function expectSame(path: string, opened: FileIds, now: FileIds): void {
  const change = findChange(opened, now)
  if (change) throw new FilesChanged(change, path)
}

/**
 * Rejects the `-wal` or `-shm` file of a replaced database, because SQLite would apply it to the new one. It is
 * not deleted here: another process may have begun to use it.
 */
function expectOwnLog(path: string, found: FileIds, old: FileIds): void {
  const isForeign =
    found.database !== old.database &&
    ((found.wal !== undefined && found.wal === old.wal) || (found.shm !== undefined && found.shm === old.shm))
  const file = resolveLinks(path)
  if (isForeign)
    throw new Error(
      `The database file ${file} was replaced, but its -wal and -shm files belong to the old one. Move ${file}-wal and ${file}-shm away.`,
    )
}

/** The applied steps of `storage/migrations.ts`. */
function listSteps(connection: Connection): readonly string[] {
  const [table] = connection.run("SELECT 1 FROM sqlite_schema WHERE name = 'modelmount_migrations'")
  if (!table) return []
  return connection
    .run('SELECT owner, number, checksum FROM modelmount_migrations ORDER BY owner, number')
    .map((step) => Object.values(step).join(' '))
}

function fail(cause: unknown): FailedResponse {
  const error = cause instanceof Error ? cause : new Error(String(cause))
  return {
    type: 'failed',
    error,
    ...('errcode' in error && typeof error.errcode === 'number' && { code: error.errcode }),
    ...(error instanceof FilesChanged && { change: { type: error.change, steps: error.steps } }),
  }
}

async function serve(): Promise<OpenResponse> {
  try {
    const server = await open(workerData as OpenRequest)
    parentPort?.on('message', (request: SqliteRequest) => {
      let response: SqliteResponse
      try {
        response = server.respond(request)
      } catch (cause) {
        response = fail(cause)
      }
      parentPort?.postMessage(response)
    })
    return { type: 'opened', files: server.files }
  } catch (cause) {
    return fail(cause)
  }
}

parentPort?.postMessage(await serve())
