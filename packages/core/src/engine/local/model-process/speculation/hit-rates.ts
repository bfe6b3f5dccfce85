/** Lengths of matches are grouped by powers of two. Longer matches are in the last group. */
const groups = 7
/** Number of runs through a group, in tokens of the group, after which older ones count half. */
const halvesAfterRuns = 16

/**
 * Measures how often the next token of a repeated passage is right, by the number of tokens that were right
 * before it. Tokens that no step verified as guesses count, too, so measuring costs nothing.
 */
export class HitRates {
  /**
   * At first, half of all matches are assumed to double their length. A long match is therefore trusted, and a
   * short one is not.
   */
  readonly #groups = Array.from({ length: groups }, (_, group) => ({ tries: 2 ** group, misses: Math.LN2 }))

  /** @param matchLength number of tokens that were right before */
  record(matchLength: number, isHit: boolean): void {
    const index = groupOf(matchLength)
    const group = this.#groups[index] as { tries: number; misses: number }
    group.tries++
    if (!isHit) group.misses++
    if (group.tries < halvesAfterRuns * 2 ** index) return
    group.tries /= 2
    group.misses /= 2
  }

  rateAt(matchLength: number): number {
    const { tries, misses } = this.#groups[groupOf(matchLength)] as { tries: number; misses: number }
    return Math.max(0, 1 - misses / tries)
  }
}

const groupOf = (matchLength: number): number => Math.min(groups - 1, 31 - Math.clz32(matchLength))
