/** Stop sequences across the borders of tokens: text is held back while it could be the start of one. */
import { PrefixMatcher } from '../util/prefix-matcher.ts'

export interface StopResult {
  /** Safe to show. */
  readonly text: string
  /** The sequence that ended the answer. */
  readonly stop?: string
}

/** Linear in the text, whatever it and the sequences are made of: by the automaton of Knuth, Morris and Pratt. */
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

  /** What was held back and turned out to be no stop sequence. */
  flush(): string {
    const pending = this.#pending
    this.#pending = ''
    for (const watched of this.#stops) watched.matched = 0
    return pending
  }

  /** The sequence that this character completes; of several, the one that began first. */
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
  /** How much of the end of the text is the beginning of the sequence. */
  matched: number
}
