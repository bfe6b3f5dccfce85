/** Runs the statements that only read, in several threads. Quick statements never wait for slow ones. */
import type { SqlValue } from '../database.ts'
import { maxSlowQueries } from '../slow-queries.ts'
import type { SqlRow } from './connection.ts'
import { ThreadEnded } from './failures.ts'
import type { SqliteThread } from './thread.ts'

/** Slow statements leave one thread to quick ones, such as those that authenticate callers, also after a start. */
const maxThreads = maxSlowQueries + 1

interface QueuedRead {
  readonly sql: string
  readonly parameters: readonly SqlValue[]
  resolve(rows: readonly SqlRow[]): void
  reject(cause: unknown): void
}

export class SqliteReaders {
  readonly #open: () => Promise<SqliteThread>
  readonly #threads = new Set<SqliteThread>()
  readonly #idle: SqliteThread[] = []
  /** The thread that is being opened. */
  #opening: Promise<void> | undefined
  readonly #quick: QueuedRead[] = []
  readonly #slow: QueuedRead[] = []
  #runningSlow = 0
  readonly #running = new Set<Promise<void>>()
  #isClosed = false

  constructor(open: () => Promise<SqliteThread>) {
    this.#open = open
  }

  query(sql: string, parameters: readonly SqlValue[], isSlow: boolean): Promise<readonly SqlRow[]> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new ThreadEnded('The reading SQLite threads were closed.'))
      const queue = isSlow ? this.#slow : this.#quick
      queue.push({ sql, parameters, resolve, reject })
      this.#dispatch()
    })
  }

  /** Closes the threads after the queued reads. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#opening || this.#running.size > 0) await Promise.all([this.#opening, ...this.#running])
    await Promise.all([...this.#threads].map((thread) => thread.close()))
  }

  #dispatch(): void {
    while (this.#quick.length > 0 && this.#runNext(this.#quick));
    while (this.#slow.length > 0 && this.#threads.size - this.#runningSlow > 1 && this.#runNext(this.#slow));
    // Starts a spare thread already when the others become busy, because a start takes longer than most reads.
    const isShort = this.#idle.length === 0 || this.#isWaiting
    if (isShort && this.#threads.size < maxThreads) this.#opening ??= this.#start()
  }

  get #isWaiting(): boolean {
    return this.#quick.length + this.#slow.length > 0
  }

  /** Returns false if no thread is idle. */
  #runNext(queue: QueuedRead[]): boolean {
    const thread = this.#takeIdle()
    const read = thread && queue.shift()
    if (!read) return false
    const running = this.#run(thread, read, queue === this.#slow).finally(() => this.#running.delete(running))
    this.#running.add(running)
    return true
  }

  #takeIdle(): SqliteThread | undefined {
    for (let thread = this.#idle.pop(); thread; thread = this.#idle.pop()) {
      if (!thread.isEnded) return thread
      this.#threads.delete(thread)
    }
    return undefined
  }

  async #run(thread: SqliteThread, read: QueuedRead, isSlow: boolean): Promise<void> {
    if (isSlow) this.#runningSlow++
    await thread.run(read.sql, read.parameters).then(read.resolve, read.reject)
    if (isSlow) this.#runningSlow--
    if (thread.isEnded) this.#threads.delete(thread)
    else this.#idle.push(thread)
    if (this.#isWaiting) this.#dispatch()
  }

  async #start(): Promise<void> {
    try {
      const thread = await this.#open()
      this.#opening = undefined
      this.#threads.add(thread)
      this.#idle.push(thread)
      if (this.#isWaiting) this.#dispatch()
    } catch (cause) {
      this.#opening = undefined
      // The other threads serve the quick statements.
      const failed = [...this.#slow.splice(0), ...(this.#threads.size > 0 ? [] : this.#quick.splice(0))]
      for (const { reject } of failed) reject(cause)
    }
  }
}
