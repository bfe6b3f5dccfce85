/**
 * Number of latest timings that are kept: low, so that changed conditions show soon, but high enough to ignore
 * single outliers.
 */
export const maxTimings = 8

/** The latest timings of steps of one size. */
export class RecentTimings {
  #timings: readonly number[] = []

  get count(): number {
    return this.#timings.length
  }

  /** Time of an undisturbed step: the lower quartile of the timings. 0 without a timing. */
  get typical(): number {
    return [...this.#timings].sort((a, b) => a - b)[this.#timings.length >> 2] ?? 0
  }

  record(timing: number): void {
    this.#timings = [...this.#timings, timing].slice(-maxTimings)
  }

  clear(): void {
    this.#timings = []
  }
}
