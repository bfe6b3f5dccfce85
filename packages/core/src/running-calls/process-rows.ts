/** The rows of app processes and their running calls. */
import type { LiveCall } from '../diagnostics/live-calls.ts'
import { toStorableId } from '../limits/demand.ts'
import type { Database } from '../storage/database.ts'

/** An app process. */
export interface AppProcess {
  readonly id: string
  readonly host: string
  readonly pid: number
}

export interface ProcessCalls {
  readonly process: AppProcess
  /** With dates as ISO strings. */
  readonly calls: readonly LiveCall[]
}

/** A process writes each second while it runs calls. After this time without a write, it counts as ended, in ms. */
const lifetimeMs = 10_000
/** When rows of ended processes, and requests that no process has read, are deleted, in ms. */
const forgottenMs = 60_000

export class ProcessRows {
  readonly #database: Database
  readonly #process: AppProcess

  constructor(database: Database, process: AppProcess) {
    this.#database = database
    this.#process = process
  }

  async write(calls: readonly LiveCall[]): Promise<void> {
    const { id, host, pid } = this.#process
    await this.#database.query(
      `INSERT INTO modelmount_running_calls (process, host, pid, calls, written_at)
       VALUES (?, ?, ?, ?, ${this.#database.clock})
       ON CONFLICT (process) DO UPDATE SET calls = excluded.calls, written_at = excluded.written_at`,
      // PostgreSQL rejects NUL, which a name of a model may contain.
      [id, host, pid, JSON.stringify(calls).replaceAll('\\u0000', '')],
    )
  }

  /** Removes the row of this process, and those of ended ones. */
  async remove(): Promise<void> {
    const { clock } = this.#database
    await this.#database.query(
      `DELETE FROM modelmount_running_calls WHERE process = ? OR written_at < ${clock} - ${forgottenMs}`,
      [this.#process.id],
    )
    await this.#database.query(
      `DELETE FROM modelmount_cancel_requests WHERE process = ? OR requested_at < ${clock} - ${forgottenMs}`,
      [this.#process.id],
    )
  }

  /** Returns the calls of the other processes that run. */
  async readOthers(): Promise<readonly ProcessCalls[]> {
    const rows = await this.#database.query<{ process: string; host: string; pid: number; calls: string }>(
      `SELECT process, host, pid, calls FROM modelmount_running_calls
       WHERE process <> ? AND written_at >= ${this.#database.clock} - ${lifetimeMs} ORDER BY process`,
      [this.#process.id],
    )
    return rows.map(({ process, host, pid, calls }) => ({
      process: { id: process, host, pid },
      calls: JSON.parse(calls) as readonly LiveCall[],
    }))
  }

  async requestCancel(callId: string, process: string): Promise<void> {
    await this.#database.query(
      `INSERT INTO modelmount_cancel_requests (call_id, process, requested_at) VALUES (?, ?, ${this.#database.clock})
       ON CONFLICT (call_id) DO NOTHING`,
      [toStorableId(callId), process],
    )
  }

  /** Returns the calls of this process that others asked it to end, once. */
  async takeCancelRequests(): Promise<readonly string[]> {
    const found = await this.#database.query(
      'SELECT 1 AS found FROM modelmount_cancel_requests WHERE process = ? LIMIT 1',
      [this.#process.id],
    )
    if (found.length === 0) return []
    const rows = await this.#database.query<{ readonly call_id: string }>(
      'DELETE FROM modelmount_cancel_requests WHERE process = ? RETURNING call_id',
      [this.#process.id],
    )
    return rows.map(({ call_id }) => call_id)
  }
}
