import { RecentTimings } from '../decoding/recent-timings.ts'

/**
 * The cost of a step before it is measured is its number of rows to the power of this number. On a CPU, 8 rows cost as
 * much as 5.5 steps with one row, and 64 rows as much as 17.
 */
const growth = 0.8
/** Number of plans after which the costs of an unused size are forgotten, since a disturbance may have raised them. */
const forgetAfterPlans = 1_000
/** Timings of steps with one row before guesses are verified. */
const minTimings = 3
/** Timings of steps with more rows that replace the assumption. */
const minSizeTimings = 2
/** A step with guesses must promise this much more tokens per time than steps with one row. */
const minGain = 1.1
/**
 * Balance of the time that verification has saved, in steps with one row. A step may start if the balance covers its
 * cost, so that wrong estimates cannot slow outputs by more than `perStep`.
 */
const balances = { initial: 20, max: 40, perStep: 0.01 }
/** A step counts as at most this many times its typical cost, since a disturbance is no wrong estimate. */
const maxOutlier = 2

/** Costs of steps with a certain number of rows, relative to a step with one row. */
interface RowCosts {
  readonly costs: RecentTimings
  /** Number of the last plan before such a step. */
  readonly usedAt: number
}

/** Decides how many guesses one step verifies, based on the measured time of each number of rows. */
export class DraftPlanner {
  readonly #oneRow = new RecentTimings()
  /** Indexed by the logarithm of the number of rows. */
  readonly #sizes: RowCosts[] = []
  #balance = balances.initial
  #plans = 0

  /**
   * Returns the number of guesses that the next step verifies: a power of two minus 1, since the step evaluates the
   * last token of the output, too.
   * @param hitRates probability of each guess, given that all guesses before it are right
   */
  plan(hitRates: readonly number[]): number {
    this.#plans++
    if (this.#oneRow.count < minTimings) return 0
    let best = { rows: 1, rate: minGain }
    let [expected, chance] = [1, 1]
    for (const [index, hitRate] of hitRates.entries()) {
      chance *= hitRate
      expected += chance
      const rows = index + 2
      if (!isPowerOfTwo(rows)) continue
      const cost = this.#costOf(rows)
      const isAffordable = this.#balance >= cost - 1
      if (isAffordable && expected / cost > best.rate) best = { rows, rate: expected / cost }
    }
    return best.rows - 1
  }

  /** @param sampled number of tokens that the step has sampled */
  observe(rows: number, sampled: number, ms: number): void {
    if (rows === 1) {
      this.#oneRow.record(ms)
      this.#save(balances.perStep)
      return
    }
    const cost = ms / this.#oneRow.typical
    this.#save(sampled - Math.min(cost, maxOutlier * this.#costOf(rows)))
    const { costs } = this.#sizeOf(rows)
    costs.record(cost)
    this.#sizes[Math.log2(rows)] = { costs, usedAt: this.#plans }
  }

  #save(steps: number): void {
    this.#balance = Math.min(balances.max, this.#balance + steps)
  }

  /** An assumption, until there are timings. The first timing may be an outlier. */
  #costOf(rows: number): number {
    if (rows === 1) return 1
    const { costs } = this.#sizeOf(rows)
    if (costs.count >= minSizeTimings) return costs.typical
    // If half as many rows cost less than assumed, so will these.
    const assumed = Math.min(rows ** growth, this.#costOf(rows / 2) * 2 ** growth)
    return costs.count > 0 ? Math.min(assumed, costs.typical) : assumed
  }

  #sizeOf(rows: number): RowCosts {
    const size = this.#sizes[Math.log2(rows)]
    const isKnown = size !== undefined && this.#plans - size.usedAt <= forgetAfterPlans
    return isKnown ? size : { costs: new RecentTimings(), usedAt: this.#plans }
  }
}

const isPowerOfTwo = (value: number): boolean => (value & (value - 1)) === 0
