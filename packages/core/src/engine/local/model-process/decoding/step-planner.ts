/** Which answers take their next step together: what steps of each size have cost decides. */

/** Enough to see a change of the machine's mood soon, and not to follow every hiccup. */
const maxTimings = 8
/** The first time may be a hiccup: so often all go together before that is judged, and once later on. */
const trials = 2
/**
 * What was not seen for so many plans is forgotten, and tried again where it may be the better way: soon after it was
 * given up, as a disturbance may have been the reason, then less and less often.
 */
const forgetAfterPlans = { first: 20, most: 640, growth: 4 }
/** Of starting a step, beside what it takes: between equal plans the one with fewer steps. */
const stepOverheadMs = 0.05

/** What is known of one size. */
class StepSize {
  /** The last ones. */
  #timings: number[] = []
  #trials = trials
  #lastPlan = 0
  #forgetAfterPlans = forgetAfterPlans.first

  get isKnown(): boolean {
    return this.#timings.length >= this.#trials
  }

  /** What a step takes when nothing else disturbs it: the lower quartile. */
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
  /** By how many answers they have. */
  readonly #sizes: StepSize[] = []
  #plans = 0

  /** @param ms what a step of so many neighbours took */
  observe(count: number, ms: number): void {
    this.#size(count).record(ms, this.#plans)
  }

  /**
   * Splits answers into steps. A batch of two can cost more than two of one, and one of three more than one of four.
   * The model joins only neighbours: to it, a batch with a gap in the ids is several.
   * @param ids ascending
   */
  plan(ids: readonly number[]): readonly (readonly number[])[] {
    this.#plans++
    for (const size of this.#sizes) size.expire(this.#plans)
    const starts = ids.flatMap((id, index) => (id - 1 === ids[index - 1] ? [] : [index]))
    return starts.flatMap((start, index) => this.#split(ids.slice(start, starts[index + 1])))
  }

  /** @param neighbours neighbours */
  #split(neighbours: readonly number[]): readonly (readonly number[])[] {
    if (!this.#size(neighbours.length).isKnown) return [neighbours]
    if (!this.#size(1).isKnown) return [neighbours.slice(0, 1), neighbours.slice(1)]
    const costs = this.#estimateCosts(neighbours.length)
    /** The cheapest way for so many, and the last step of it. */
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

  /** What steps of each size up to `most` cost: taken to grow evenly between sizes that were seen. */
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
