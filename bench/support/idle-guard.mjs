// Work of others on the machine ruins a measurement: a sample that they had a part in is taken again.
import { busySeconds, cpuSeconds, knowsProcesses, trees } from './processes.mjs'

/** In cores. */
export const allowed = 0.12
const attempts = 6

/** An answer that cannot be compared with others: it ended early. The sample is taken again. */
export class Spoilt extends Error {}

export class IdleGuard {
  #roots
  retakes = 0

  /** @param roots the processes that are measured, beside this one. Without them the guard is off. */
  constructor(roots) {
    this.#roots = roots && [process.pid, ...roots]
  }

  get isOn() {
    return knowsProcesses && this.#roots !== undefined
  }

  /** The quietest sample, and how many cores others used meanwhile. */
  async take(sample) {
    let best
    let spoilt
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) this.retakes++
      const before = this.#look()
      try {
        const value = await sample()
        const others = this.#othersSince(before)
        if (!best || others < best.others) best = { value, others }
        if (others <= allowed) break
      } catch (error) {
        if (!(error instanceof Spoilt)) throw error
        spoilt = error
      }
    }
    if (!best) throw spoilt
    return best
  }

  #look() {
    if (!this.isOn) return undefined
    return { at: performance.now(), busy: busySeconds(), own: cpuSeconds(trees(this.#roots)) }
  }

  #othersSince(before) {
    if (!before) return 0
    const { at, busy, own } = this.#look()
    return Math.max(0, (busy - before.busy - (own - before.own)) / ((at - before.at) / 1_000))
  }
}
