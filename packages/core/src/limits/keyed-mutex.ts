/**
 * Runs the transactions of one subject one after the other within this process. The database would serialize
 * them anyway, because they lock the same rows. But a transaction that waits in the database holds a
 * connection that other subjects need.
 */
import { LlmError } from '../errors.ts'

export class KeyedMutex {
  /** Maps each key to a promise that resolves when the last queued task of the key is done. */
  readonly #tails = new Map<string, Promise<void>>()

  /**
   * Runs a task when no other task with one of its keys runs. Throws an `LlmError` `overloaded` after a wait
   * of more than 10 seconds: then the database is unavailable or far too slow.
   */
  async runExclusive<Result>(keys: Iterable<string>, task: () => Promise<Result>): Promise<Result> {
    const requestedAt = performance.now()
    const releases: (() => void)[] = []
    try {
      // All tasks take their keys in the same order, which prevents deadlocks. A task queues for one key at a
      // time, so that a busy subject does not block the others.
      for (const key of [...new Set(keys)].sort()) releases.push(await this.#acquire(key))
      if (performance.now() - requestedAt > maxWaitMs) throw waitedTooLong()
      return await task()
    } finally {
      for (const release of releases) release()
    }
  }

  async #acquire(key: string): Promise<() => void> {
    const previous = this.#tails.get(key)
    let release = (): void => {}
    const tail = new Promise<void>((resolve) => {
      release = () => {
        resolve()
        if (this.#tails.get(key) === tail) this.#tails.delete(key)
      }
    })
    this.#tails.set(key, tail)
    await previous
    return release
  }
}

const maxWaitMs = 10_000

const waitedTooLong = (): LlmError =>
  new LlmError('overloaded', 'Too many calls wait for their limits to be looked up. Try again in 1 s.', {
    retryAfterMs: 1_000,
  })
