/** Watches the API keys whose calls run in this process. Any process may revoke such a key. */
import type { Database } from '../../storage/database.ts'

export class RevocationWatcher {
  readonly #database: Database
  /** Listeners of running calls, by key. */
  readonly #listeners = new Map<string, Set<() => void>>()
  #timer: NodeJS.Timeout | undefined

  constructor(database: Database) {
    this.#database = database
  }

  /** @returns a function that stops watching */
  watch(id: string, onRevoked: () => void): () => void {
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(onRevoked))
    // After an error, the next interval queries the database again.
    this.#timer ??= setInterval(() => void this.look().catch(() => {}), lookEveryMs).unref()
    return () => {
      listeners.delete(onRevoked)
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** Calls the listeners of a revoked key. The listeners end the running calls of the key. */
  end(id: string): void {
    for (const onRevoked of this.#listeners.get(id) ?? []) onRevoked()
  }

  /**
   * Asks the database which watched keys are revoked, or deleted after that. A timer calls this every 5 s while
   * calls run.
   */
  async look(): Promise<void> {
    const ids = [...this.#listeners.keys()]
    for (let from = 0; from < ids.length; from += batchSize) {
      const batch = ids.slice(from, from + batchSize)
      const rows = await this.#database.query<{ readonly id: string }>(
        `SELECT id FROM modelmount_keys WHERE revoked_at IS NULL AND id IN (${batch.map(() => '?').join(', ')})`,
        batch,
      )
      const valid = new Set(rows.map(({ id }) => id))
      for (const id of batch) if (!valid.has(id)) this.end(id)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

const lookEveryMs = 5_000
const batchSize = 500
