/** Stop sequences across the borders of tokens: text is held back while it could be the start of one. */

export interface Cut {
  /** Safe to show. */
  readonly text: string
  /** The sequence that ended the answer. */
  readonly stop?: string
}

export class StopMatcher {
  readonly #stops: readonly string[]
  #held = ''

  constructor(stops: readonly string[] = []) {
    this.#stops = stops
  }

  push(text: string): Cut {
    const seen = this.#held + text
    // The one that is whole first, as if the text had come character by character.
    const [first] = this.#stops
      .map((stop) => ({ stop, at: seen.indexOf(stop) }))
      .filter(({ at }) => at !== -1)
      .sort((a, b) => a.at + a.stop.length - (b.at + b.stop.length) || a.at - b.at)
    if (first) {
      this.#held = ''
      return { text: seen.slice(0, first.at), stop: first.stop }
    }
    const hold = Math.max(0, ...this.#stops.map((stop) => overlap(seen, stop)))
    this.#held = seen.slice(seen.length - hold)
    return { text: seen.slice(0, seen.length - hold) }
  }

  /** What was held back and turned out to be no stop sequence. */
  flush(): string {
    const held = this.#held
    this.#held = ''
    return held
  }
}

/** How much of the end of `text` is the beginning of `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--) {
    if (stop.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}
