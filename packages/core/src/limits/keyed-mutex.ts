/**
 * Queues the calls of one subject in the process. Its rows serve one transaction at a time, and a transaction that waits for them holds
 * a connection that other subjects need.
 */
import { LlmError } from '../errors.ts'

export class KeyedMutex {
  /** By subject, resolved when its last queued call is done. */
  readonly #tails = new Map<string, Promise<void>>()

  /** Throws `overloaded` after a wait that only an unavailable or far too slow database explains. */
  async runExclusive<Result>(keys: Iterable<string>, task: () => Promise<Result>): Promise<Result> {
    const requestedAt = performance.now()
    const releases: (() => void)[] = []
    try {
      // In one order, which prevents deadlocks, and one queue at a time, so that a busy subject does not block the others.
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
