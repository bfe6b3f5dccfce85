/** Decides which sequences are decoded in one batch, by the measured time of each batch size. */

/** Enough to notice changed conditions soon without following every outlier. */
const maxTimings = 8
/** Measurements before a size is judged, since the first may be an outlier. After expiry, one is enough. */
const trials = 2
/**
 * Plans after which the timings of an unused size expire, so that it is tried again where it may be faster. Soon at
 * first, since a disturbance may have made it look slow, then less and less often.
 */
const forgetAfterPlans = { first: 20, most: 640, growth: 4 }
/** Fixed cost of a step, which prefers fewer steps between equal plans. */
const stepOverheadMs = 0.05

/** Timings of one batch size. */
class StepSize {
  #timings: number[] = []
  #trials = trials
  #lastPlan = 0
  #forgetAfterPlans = forgetAfterPlans.first

  get isKnown(): boolean {
    return this.#timings.length >= this.#trials
  }

  /** Undisturbed time of a step: the lower quartile. */
  get ms(): number {
    return [...this.#timings].sort((a, b) => a - b)[this.#timings.length >> 2] ?? 0
  }

  record(ms: number, plan: number): void {
    this.#timings = [...this.#timings, ms].slice(-maxTimings)
    this.#lastPlan = plan
    if (this.#timings.length === maxTimings) this.#forgetAfterPlans = forgetAfterPlans.first
  }

  expire(plan: number): void {
    if (plan - this.#lastPlan <= this.#forgetAfterPlans || this.#timings.length === 0) return
    this.#timings = []
    this.#trials = 1
    this.#forgetAfterPlans = Math.min(this.#forgetAfterPlans * forgetAfterPlans.growth, forgetAfterPlans.most)
  }
}

export class StepPlanner {
  /** Indexed by the number of sequences. */
  readonly #sizes: StepSize[] = []
  #plans = 0

  /** @param ms time of a step with `count` neighbours */
  observe(count: number, ms: number): void {
    this.#size(count).record(ms, this.#plans)
  }

  /**
   * Splits sequences into steps. A batch of two can cost more than two of one, and one of three more than one of four.
   * llama.cpp joins only neighbours: it splits a batch with a gap in the ids.
   * @param ids ascending
   */
  plan(ids: readonly number[]): readonly (readonly number[])[] {
    this.#plans++
    for (const size of this.#sizes) size.expire(this.#plans)
    const starts = ids.flatMap((id, index) => (id - 1 === ids[index - 1] ? [] : [index]))
    return starts.flatMap((start, index) => this.#split(ids.slice(start, starts[index + 1])))
  }

  /** @param neighbours ids without a gap */
  #split(neighbours: readonly number[]): readonly (readonly number[])[] {
    if (!this.#size(neighbours.length).isKnown) return [neighbours]
    if (!this.#size(1).isKnown) return [neighbours.slice(0, 1), neighbours.slice(1)]
    const costs = this.#estimateCosts(neighbours.length)
    /** Lowest cost for each count, and the size of its last step. */
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

  /** Cost of each size up to `maxCount`, interpolated between measured sizes. */
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
