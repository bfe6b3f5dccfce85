/** The calls that run in all app processes of a database, and how to end them. Without a database, those of this one. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { subscribe } from '../diagnostics/channels.ts'
import type { LiveCall, LiveCalls } from '../diagnostics/live-calls.ts'
import { LlmError } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { migrate } from '../storage/migrations.ts'
import { type AppProcess, ProcessRows } from './process-rows.ts'
import { runningCallTables } from './tables.ts'

export interface RunningCall extends LiveCall {
  readonly process: AppProcess
  readonly canCancel: boolean
}

export interface RunningCallList {
  /** The oldest ones, at most 1,000. */
  readonly data: readonly RunningCall[]
  /** Whether these are the calls of all app processes. */
  readonly isShared: boolean
}

export interface CallDirectoryOptions {
  readonly llmOf: () => object
  readonly liveCalls: LiveCalls
  /** Cancels a call of this process. Returns false if it does not run here. */
  readonly cancelCall: (id: string, reason: LlmError) => boolean
  readonly onError: (cause: unknown) => void
}

/** How often this process writes its calls, reads requests to end them, and reads the calls of others, in ms. */
const everyMs = 1_000
/** Calls in one list, and in the row of one process. */
const maxCalls = 1_000

export class CallDirectory {
  readonly #process: AppProcess = { id: randomUUID(), host: hostname(), pid: process.pid }
  readonly #options: CallDirectoryOptions
  readonly #rows: ProcessRows | undefined
  /** The list that all who wait for the next one share. */
  #next: Promise<RunningCallList> | undefined
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #hasRow = false
  #stop: (() => void) | undefined

  constructor(database: Database | undefined, options: CallDirectoryOptions) {
    this.#options = options
    this.#rows = database && new ProcessRows(database, this.#process)
  }

  /** Begins to share the calls of this process. Does nothing without a database. */
  start(): void {
    const { llmOf, liveCalls } = this.#options
    if (!this.#rows) return
    liveCalls.listen()
    this.#stop = subscribe(llmOf(), {
      'modelmount:call:start': () => {
        this.#timer ??= setInterval(() => this.#work(), everyMs).unref()
      },
    })
  }

  /** Returns the calls that run now. */
  async list(): Promise<RunningCallList> {
    const own = this.#options.liveCalls.list().map((call) => this.#describe(call, this.#process))
    const others = (await this.#rows?.readOthers()) ?? []
    const foreign = others.flatMap(({ process, calls }) => calls.map((call) => this.#describe(call, process)))
    const all = [...own, ...foreign].sort((a, b) => timeOf(a) - timeOf(b))
    return { data: all.slice(0, maxCalls), isShared: this.#rows !== undefined }
  }

  /** Returns the calls in a second. All readers share one query, and nothing is read without a reader. */
  next(): Promise<RunningCallList> {
    this.#next ??= delay(everyMs, undefined, { ref: false }).then(() => {
      this.#next = undefined
      return this.list()
    })
    return this.#next
  }

  /**
   * Ends a call: `canceled` in this process, `requested` in another one, which ends it within two seconds. Its client gets
   * an error after what was generated. Rejects with `not_found` if it does not run.
   */
  async cancel(id: string): Promise<'canceled' | 'requested'> {
    if (this.#options.cancelCall(id, canceled())) return 'canceled'
    const others = (await this.#rows?.readOthers()) ?? []
    const owner = others.find(({ calls }) => calls.some((call) => call.id === id))
    if (!this.#rows || !owner) throw new LlmError('not_found', 'Call not found. It may have ended.')
    await this.#rows.requestCancel(id, owner.process.id)
    return 'requested'
  }

  async close(): Promise<void> {
    this.#stop?.()
    clearInterval(this.#timer)
    await this.#working
    if (this.#hasRow) await this.#rows?.remove().catch(this.#options.onError)
  }

  /** One at a time: while a database hangs, the intervals pass. An error is reported, and a later interval tries again. */
  #work(): void {
    this.#working ??= this.#share()
      .catch(this.#options.onError)
      .finally(() => {
        this.#working = undefined
      })
  }

  /** Calls that are over within a second are not written. */
  async #share(): Promise<void> {
    const { liveCalls, cancelCall } = this.#options
    const calls = liveCalls.list()
    const long = calls.filter(({ ageMs }) => ageMs >= everyMs).slice(0, maxCalls)
    if (long.length > 0) {
      this.#hasRow = true
      await this.#rows?.write(long)
      for (const id of (await this.#rows?.takeCancelRequests()) ?? []) cancelCall(id, canceled())
      return
    }
    if (this.#hasRow) await this.#rows?.remove()
    this.#hasRow = false
    if (calls.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** @param call may come from JSON, with dates as strings */
  #describe = (call: LiveCall, process: AppProcess): RunningCall => ({
    ...call,
    startedAt: new Date(call.startedAt),
    process,
    canCancel: true,
  })
}

/** Opens running calls, and creates their tables. */
export async function openCallDirectory(
  database: Database | undefined,
  options: CallDirectoryOptions,
): Promise<CallDirectory> {
  if (database) await migrate(database, 'running-calls', runningCallTables)
  return new CallDirectory(database, options)
}

const timeOf = ({ startedAt }: RunningCall): number => startedAt.getTime()

/** Clients do not repeat a call after this code. */
const canceled = (): LlmError => new LlmError('permission', 'An operator of this app has canceled the call.')
