// Repeats samples that other processes of the machine have disturbed.
import { busySeconds, cpuSeconds, knowsProcesses, trees } from './processes.mjs'

/** Cores that other processes may use during a sample. */
export const allowed = 0.12
const attempts = 6

/** An answer that ended early, so that the sample must be taken again. */
export class Spoilt extends Error {}

export class IdleGuard {
  #roots
  retakes = 0

  /** @param roots ids of the measured processes, apart from this one. Without them, the guard is off. */
  constructor(roots) {
    this.#roots = roots && [process.pid, ...roots]
  }

  get isOn() {
    return knowsProcesses && this.#roots !== undefined
  }

  /** Returns the least disturbed sample, and how many cores other processes used during it. */
  async take(sample) {
    let best
    let spoilt
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) this.retakes++
      const before = this.#measure()
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

  #measure() {
    if (!this.isOn) return undefined
    return { at: performance.now(), busy: busySeconds(), own: cpuSeconds(trees(this.#roots)) }
  }

  #othersSince(before) {
    if (!before) return 0
    const { at, busy, own } = this.#measure()
    return Math.max(0, (busy - before.busy - (own - before.own)) / ((at - before.at) / 1_000))
  }
}
