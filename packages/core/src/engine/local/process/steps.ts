/** Which answers take their next step together: what steps of each size have cost decides. */

/** The first step of a size is slow, as buffers are made for it, and one alone may be a hiccup. */
const trials = 4
/** Enough to see a change of the machine's mood soon, and not to follow every hiccup. */
const remembered = 9
/** So often all go together, to learn whether that has become the better way. */
const tryEvery = 128
/** Of starting a step, beside what it takes: between equal plans the one with fewer steps. */
const stepMs = 0.05

export class StepCosts {
  readonly #seen: number[][] = []
  #medians: (number | undefined)[] = []
  #plans = 0

  /** @param ms what a step of so many answers took */
  observe(count: number, ms: number): void {
    const seen = [...(this.#seen[count] ?? []), ms].slice(-remembered)
    this.#seen[count] = seen
    if (seen.length >= trials) this.#medians[count] = median(seen)
  }

  /**
   * Splits answers into steps, each of neighbours. A batch of two can cost more than two of one, and one of three
   * more than one of four: the model joins only sequences whose ids follow each other.
   * @param ids ascending
   */
  plan(ids: readonly number[]): readonly (readonly number[])[] {
    if (++this.#plans % tryEvery === 0) return ids.length > 0 ? [ids] : []
    const best: { readonly cost: number; readonly from: number }[] = [{ cost: 0, from: 0 }]
    for (let end = 1; end <= ids.length; end++) {
      let choice = { cost: Number.POSITIVE_INFINITY, from: 0 }
      for (let from = 0; from < end; from++) {
        const cost = (best[from]?.cost ?? 0) + this.#costOf(ids.slice(from, end))
        // Of two that cost the same, the one with the larger step.
        if (cost < choice.cost - 1e-9) choice = { cost, from }
      }
      best[end] = choice
    }
    const groups: (readonly number[])[] = []
    for (let end = ids.length; end > 0; end = best[end]?.from ?? 0)
      groups.unshift(ids.slice(best[end]?.from ?? 0, end))
    return groups
  }

  /** A gap in the ids splits a batch into one for each run. */
  #costOf(ids: readonly number[]): number {
    let cost = stepMs
    let run = 1
    for (let index = 1; index <= ids.length; index++) {
      if (index < ids.length && ids[index] === (ids[index - 1] ?? 0) + 1) run++
      else {
        cost += this.#expected(run)
        run = 1
      }
    }
    return cost
  }

  /** A size that was not tried enough is taken for cheap, so that it is tried. */
  #expected(count: number): number {
    return this.#medians[count] ?? this.#medians[1] ?? 1
  }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0
