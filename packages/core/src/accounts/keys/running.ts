/** Answers of keys that run: those of a key that is revoked end, whichever process has revoked it. */
import { setMaxListeners } from 'node:events'
import type { Database } from '../../storage/database.ts'

export class RevocationWatcher {
  readonly #database: Database
  readonly #refusal: () => Error
  /** By key, what ends each of its answers. */
  readonly #running = new Map<string, Set<() => void>>()
  #timer: NodeJS.Timeout | undefined

  /** @param refusal what readers of an answer get whose key is revoked */
  constructor(database: Database, refusal: () => Error) {
    this.#database = database
    this.#refusal = refusal
  }

  /** @param start makes an answer, which is to end when its signal aborts: where `signal` does, and where the key is revoked */
  async during<Item, Answer extends AsyncIterable<Item>>(
    id: string,
    signal: AbortSignal,
    start: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    const either = new AbortController()
    let isRevoked = false
    const revoke = (): void => {
      isRevoked = true
      either.abort()
    }
    const cancel = (): void => {
      leave()
      either.abort()
    }
    const leave = (): void => {
      signal.removeEventListener('abort', cancel)
      this.#leave(id, revoke)
    }
    this.#enter(id, revoke)
    // A signal may be shared by any number of calls.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', cancel)
    if (signal.aborted) cancel()

    /** Of the two ways to end, only one is an error. */
    const orRefused = async <Result>(step: () => Promise<Result>): Promise<Result> => {
      try {
        const result = await step()
        if (isRevoked) throw this.#refusal()
        return result
      } catch (cause) {
        leave()
        throw isRevoked ? this.#refusal() : cause
      }
    }

    const answer = await orRefused(() => start(either.signal))
    const items = answer[Symbol.asyncIterator]()
    const iterator: AsyncIterator<Item> = {
      next: async () => {
        const step = await orRefused(() => items.next())
        if (step.done) leave()
        return step
      },
      return: async (value?: unknown) => {
        leave()
        return (await items.return?.(value)) ?? { done: true, value }
      },
    }
    return { ...answer, [Symbol.asyncIterator]: () => iterator }
  }

  /** Ends the answers of a key. */
  end(id: string): void {
    for (const revoke of this.#running.get(id) ?? []) revoke()
  }

  /** Ends those of keys that were revoked elsewhere; by itself it looks often enough. */
  async check(): Promise<void> {
    const ids = [...this.#running.keys()]
    for (let from = 0; from < ids.length; from += batchSize) {
      const batch = ids.slice(from, from + batchSize)
      const revoked = await this.#database.query<{ readonly id: string }>(
        `SELECT id FROM modelmount_keys WHERE revoked_at IS NOT NULL AND id IN (${batch.map(() => '?').join(', ')})`,
        batch,
      )
      for (const { id } of revoked) this.end(id)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #enter(id: string, revoke: () => void): void {
    const answers = this.#running.get(id) ?? new Set()
    this.#running.set(id, answers.add(revoke))
    // A database that is away for a moment is asked again.
    this.#timer ??= setInterval(() => void this.check().catch(() => {}), checkEveryMs).unref()
  }

  #leave(id: string, revoke: () => void): void {
    const answers = this.#running.get(id)
    answers?.delete(revoke)
    if (answers?.size === 0) this.#running.delete(id)
    if (this.#running.size === 0) this.close()
  }
}

const checkEveryMs = 5_000
const batchSize = 500
