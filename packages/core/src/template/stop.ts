/** Finds stop sequences across token boundaries. Holds back text that could start a stop sequence. */
import { PrefixMatcher } from '../util/prefix-matcher.ts'

export interface StopResult {
  /** Text that belongs to no stop sequence. */
  readonly text: string
  /** The stop sequence that was found. */
  readonly stop?: string
}

/** Finds stop sequences in linear time (Knuth–Morris–Pratt algorithm). */
export class StopMatcher {
  readonly #stops: readonly StopState[]
  #pending = ''

  constructor(stops: readonly string[] = []) {
    this.#stops = stops.map((stop) => ({ stop, matcher: new PrefixMatcher(stop), matched: 0 }))
  }

  push(text: string): StopResult {
    const seen = this.#pending + text
    for (let at = this.#pending.length; at < seen.length; at++) {
      const stop = this.#step(seen[at] as string)
      if (stop === undefined) continue
      this.flush()
      return { text: seen.slice(0, at + 1 - stop.length), stop }
    }
    const pendingLength = this.#stops.reduce((max, { matched }) => Math.max(max, matched), 0)
    this.#pending = seen.slice(seen.length - pendingLength)
    return { text: seen.slice(0, seen.length - pendingLength) }
  }

  /** Returns held-back text that did not complete a stop sequence. */
  flush(): string {
    const pending = this.#pending
    this.#pending = ''
    for (const watched of this.#stops) watched.matched = 0
    return pending
  }

  /**
   * Returns the stop sequence that this character completes. If it completes several, returns the longest.
   */
  #step(character: string): string | undefined {
    let completed: string | undefined
    for (const watched of this.#stops) {
      const { stop, matcher } = watched
      watched.matched = matcher.advance(watched.matched, character)
      if (watched.matched === stop.length && stop.length > (completed?.length ?? 0)) completed = stop
    }
    return completed
  }
}

interface StopState {
  readonly stop: string
  readonly matcher: PrefixMatcher<string>
  /** Length of the longest prefix of `stop` at the end of the text so far. */
  matched: number
}
