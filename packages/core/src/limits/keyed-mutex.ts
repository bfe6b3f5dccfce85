/**
 * Calls of one subject ask the database one after the other: its rows let no two in at once, and whoever waits there holds a connection
 * that other subjects need.
 */
import { LlmError } from '../errors.ts'

export class KeyedMutex {
  /** By subject, when the last one in its line is done. */
  readonly #tails = new Map<string, Promise<void>>()

  /** Throws `overloaded` where a turn comes so late that the database has to be away, or far too slow. */
  async runExclusive<Result>(keys: Iterable<string>, task: () => Promise<Result>): Promise<Result> {
    const requestedAt = performance.now()
    const releases: (() => void)[] = []
    try {
      // In one order, so that nobody waits in a circle; and one line at a time, so that many of one subject are not in front of all others.
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
