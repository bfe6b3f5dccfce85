/**
 * Runs the transactions of one subject one after the other within this process. The database would serialize
 * them anyway, because they lock the same rows. But each transaction that waits there holds a connection that
 * other subjects need.
 */
import { LlmError } from '../errors.ts'

export class KeyedMutex {
  /** Maps each key to a promise that resolves when the last queued task of the key is done. */
  readonly #tails = new Map<string, Promise<void>>()

  /**
   * Runs a task while no other task holds any of its keys. Throws `overloaded` if the wait took more than 10
   * seconds. Only an unavailable or far too slow database explains such a wait.
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
