/**
 * Finds one pattern in a stream by the Knuth-Morris-Pratt algorithm, in constant amortised time per element.
 */
export class PrefixMatcher<T> {
  readonly #pattern: ArrayLike<T>
  /** For each prefix of the pattern: the length of its longest proper suffix that is also a prefix. */
  readonly #borders: number[] = []

  constructor(pattern: ArrayLike<T>) {
    this.#pattern = pattern
    for (let at = 0; at < pattern.length; at++)
      this.#borders.push(at === 0 ? 0 : this.advance(this.#borders[at - 1] as number, pattern[at] as T))
  }

  /**
   * Returns the length of the longest prefix of the pattern at the end of the stream, `element` included.
   *
   * @param matched the result for the previous element
   */
  advance(matched: number, element: T): number {
    let length = matched
    while (length > 0 && this.#pattern[length] !== element) length = this.#borders[length - 1] as number
    return this.#pattern[length] === element ? length + 1 : length
  }
}
