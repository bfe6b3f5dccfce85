/** Bounds the queries that may take seconds, such as reports, so that they leave threads or connections for others. */
import { databaseUnavailable } from './database.ts'

/** How many run at a time. SQLite has one more reading thread. */
export const maxSlowQueries = 2
const maxQueued = 100

export class SlowQueries {
  #running = 0
  readonly #queue: (() => void)[] = []

  /** Runs the query when fewer than two others run. Rejects with `unavailable` if 100 wait already. */
  async run<Result>(query: () => Promise<Result>): Promise<Result> {
    if (this.#running < maxSlowQueries) this.#running++
    else if (this.#queue.length < maxQueued) await new Promise<void>((resolve) => this.#queue.push(resolve))
    else throw databaseUnavailable(new Error(`${maxQueued} slow queries are queued already.`))
    try {
      return await query()
    } finally {
      const next = this.#queue.shift()
      if (next) next()
      else this.#running--
    }
  }
}
