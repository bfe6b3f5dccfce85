/** Decides which sequences are decoded in one batch, based on the measured time of each batch size. */

import { maxTimings, RecentTimings } from './recent-timings.ts'

/**
 * Number of timings before the planner judges a size, since the first may be an outlier. After expiry, one
 * timing is enough.
 */
const trials = 2
/**
 * Number of plans after which the timings of an unused size expire, so that the planner tries the size again.
 * The first expiry comes soon, since a disturbance may have made the size look slow. Later expiries are less
 * and less frequent.
 */
const forgetAfterPlans = { first: 20, most: 640, growth: 4 }
/** Cost added for each decoding step. Of two equally fast plans, the plan with fewer steps therefore wins. */
const stepOverheadMs = 0.05

/** Timings of one batch size. */
class StepSize {
  readonly #timings = new RecentTimings()
  #trials = trials
  #lastPlan = 0
  #forgetAfterPlans = forgetAfterPlans.first

  get isKnown(): boolean {
    return this.#timings.count >= this.#trials
  }

  get ms(): number {
    return this.#timings.typical
  }

  record(ms: number, plan: number): void {
    this.#timings.record(ms)
    this.#lastPlan = plan
    if (this.#timings.count === maxTimings) this.#forgetAfterPlans = forgetAfterPlans.first
  }

  expire(plan: number): void {
    if (plan - this.#lastPlan <= this.#forgetAfterPlans || this.#timings.count === 0) return
    this.#timings.clear()
    this.#trials = 1
    this.#forgetAfterPlans = Math.min(this.#forgetAfterPlans * forgetAfterPlans.growth, forgetAfterPlans.most)
  }
}

export class StepPlanner {
  /** Indexed by the number of sequences. */
  readonly #sizes: StepSize[] = []
  #plans = 0

  /** @param ms time of a step with `count` sequences */
  observe(count: number, ms: number): void {
    this.#size(count).record(ms, this.#plans)
  }

  /**
   * Splits sequences into decoding steps of one batch each. A batch of two can cost more than two batches of
   * one. A batch of three can cost more than a batch of four. llama.cpp splits a batch with a gap in the ids,
   * so only consecutive ids share a step.
   * @param ids ascending
   */
  plan(ids: readonly number[]): readonly (readonly number[])[] {
    this.#plans++
    for (const size of this.#sizes) size.expire(this.#plans)
    const starts = ids.flatMap((id, index) => (id - 1 === ids[index - 1] ? [] : [index]))
    return starts.flatMap((start, index) => this.#split(ids.slice(start, starts[index + 1])))
  }

  /** @param neighbours consecutive ids */
  #split(neighbours: readonly number[]): readonly (readonly number[])[] {
    if (!this.#size(neighbours.length).isKnown) return [neighbours]
    if (!this.#size(1).isKnown) return [neighbours.slice(0, 1), neighbours.slice(1)]
    const costs = this.#estimateCosts(neighbours.length)
    /** Lowest cost for each number of sequences, and the size of the last step at that cost. */
    const best = [{ cost: 0, step: 0 }]
    for (let count = 1; count <= neighbours.length; count++) {
      let choice = { cost: Number.POSITIVE_INFINITY, step: 0 }
      for (let step = 1; step <= count; step++) {
        const cost = (best[count - step]?.cost ?? 0) + (costs[step] ?? 0) + stepOverheadMs
        if (cost <= choice.cost) choice = { cost, step }
      }
      best.push(choice)
    }
    const groups: (readonly number[])[] = []
    for (let end = neighbours.length; end > 0; end -= best[end]?.step ?? end)
      groups.unshift(neighbours.slice(end - (best[end]?.step ?? end), end))
    return groups
  }

  /**
   * Estimates the cost of each batch size up to `maxCount`. Costs between two measured sizes are
   * interpolated.
   */
  #estimateCosts(maxCount: number): readonly number[] {
    const costs = [0]
    let from = 0
    for (let count = 1; count <= maxCount; count++) {
      const size = this.#size(count)
      if (!size.isKnown) continue
      const slope = (size.ms - (costs[from] ?? 0)) / (count - from)
      for (let between = from + 1; between <= count; between++)
        costs[between] = (costs[from] ?? 0) + slope * (between - from)
      from = count
    }
    return costs
  }

  #size(count: number): StepSize {
    while (this.#sizes.length <= count) this.#sizes.push(new StepSize())
    return this.#sizes[count] as StepSize
  }
}
