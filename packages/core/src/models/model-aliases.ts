/** Other names of models, which the app chooses for agents and SDKs that ask for hosted models. */
import { createTextMatcher, isPattern, matchKeyOf, specificityOf } from './name-pattern.ts'

/** Maps each alias, or pattern of aliases, to the name of a model. */
export type Aliases = Readonly<Record<string, string>>

export interface Alias {
  readonly alias: string
  /** Name of the model. It need not exist. */
  readonly target: string
}

/** Limit in characters, longer than any model name. Clients can send names of several megabytes. */
const maxLength = 1_000

export class ModelAliases {
  /** Aliases without `*`, by the key of their names. */
  #named: ReadonlyMap<string, Alias> = new Map()
  /** The most specific pattern first. */
  #patterns: readonly { readonly matches: (text: string) => boolean; readonly target: string }[] = []

  constructor(aliases: Aliases = {}) {
    this.set(aliases)
  }

  /** @param aliases options that have been checked */
  set(aliases: Aliases): void {
    const entries = Object.entries(aliases).map(([alias, target]) => ({ alias, target }))
    this.#named = new Map(
      entries.filter(({ alias }) => !isPattern(alias)).map((entry) => [matchKeyOf(entry.alias), entry]),
    )
    this.#patterns = entries
      .filter(({ alias }) => isPattern(alias))
      // Of two patterns with the same rank, the later one wins.
      .reverse()
      .sort((a, b) => specificityOf(b.alias) - specificityOf(a.alias))
      .map(({ alias, target }) => ({ matches: createTextMatcher(alias), target }))
  }

  /** Returns the name of the model that an alias means. The result is never an alias. */
  targetOf(name: string): string | undefined {
    if (name.length > maxLength) return undefined
    const named = this.#named.get(matchKeyOf(name))
    if (named) return named.target
    // Hosted models have no tags, so a pattern such as `*-haiku` must not have to match the tag `latest`.
    const untagged = name.replace(/:latest$/i, '')
    return this.#patterns.find(({ matches }) => matches(untagged) || matches(`${untagged}:latest`))?.target
  }

  /** Aliases without `*`. */
  list(): readonly Alias[] {
    return [...this.#named.values()]
  }
}
