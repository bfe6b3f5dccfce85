/**
 * Calls of one subject ask the database one after the other: its rows let no two in at once, and whoever waits there holds a connection
 * that other subjects need.
 */
import { LlmError } from '../errors.ts'

export class Lines {
  /** By subject, when the last one in its line is done. */
  readonly #ends = new Map<string, Promise<void>>()

  /** Throws `overloaded` where a turn comes so late that the database has to be away, or far too slow. */
  async inTurn<Result>(subjects: Iterable<string>, work: () => Promise<Result>): Promise<Result> {
    const enteredAt = performance.now()
    const leaves: (() => void)[] = []
    try {
      // In one order, so that nobody waits in a circle; and one line at a time, so that many of one subject are not in front of all others.
      for (const subject of [...new Set(subjects)].sort()) leaves.push(await this.#enter(subject))
      if (performance.now() - enteredAt > longestMs) throw tooLate()
      return await work()
    } finally {
      for (const leave of leaves) leave()
    }
  }

  async #enter(subject: string): Promise<() => void> {
    const before = this.#ends.get(subject)
    let leave = (): void => {}
    const end = new Promise<void>((resolve) => {
      leave = () => {
        resolve()
        if (this.#ends.get(subject) === end) this.#ends.delete(subject)
      }
    })
    this.#ends.set(subject, end)
    await before
    return leave
  }
}

const longestMs = 10_000

const tooLate = (): LlmError =>
  new LlmError('overloaded', 'Too many calls wait for their limits to be looked up. Try again in 1 s.', {
    retryAfterMs: 1_000,
  })
