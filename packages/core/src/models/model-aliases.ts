/** Other names of models, which the app chooses for agents and SDKs that ask for hosted models. */
import { createTextMatcher, isPattern, matchKeyOf, specificityOf } from './name-pattern.ts'

/** Maps each alias, or pattern of aliases, to its model or models. */
export type Aliases = Readonly<Record<string, AliasTarget>>

/**
 * The name of a model, or a list. Of a list of names, each model is the fallback of the one before. Of a list with weights,
 * the model of a call is chosen at random, and the others are its fallbacks.
 */
export type AliasTarget = string | readonly string[] | readonly WeightedModel[]

export interface WeightedModel {
  readonly model: string
  /** Share of the calls, relative to the other weights. A model with the weight 0 is a fallback only. */
  readonly weight: number
}

export interface Alias {
  readonly alias: string
  readonly target: AliasTarget
}

/** Limit in characters, longer than any model name. Clients can send names of several megabytes. */
const maxLength = 1_000

export class ModelAliases {
  /** Aliases without `*`, by the key of their names. */
  #named: ReadonlyMap<string, Alias> = new Map()
  /** The most specific pattern first. */
  #patterns: readonly { readonly matches: (text: string) => boolean; readonly target: AliasTarget }[] = []

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

  /**
   * Returns the names of the models that an alias means, in the order in which they are tried. With weights, the first one
   * is drawn for each call. None of them is an alias.
   */
  targetsOf(name: string): readonly string[] | undefined {
    const target = this.#targetOf(name)
    return target === undefined ? undefined : orderTargets(target)
  }

  /** Aliases without `*`. */
  list(): readonly Alias[] {
    return [...this.#named.values()]
  }

  #targetOf(name: string): AliasTarget | undefined {
    if (name.length > maxLength) return undefined
    const named = this.#named.get(matchKeyOf(name))
    if (named) return named.target
    // Hosted models have no tags, so a pattern such as `*-haiku` must not have to match the tag `latest`.
    const untagged = name.replace(/:latest$/i, '')
    return this.#patterns.find(({ matches }) => matches(untagged) || matches(`${untagged}:latest`))?.target
  }
}

export function orderTargets(target: AliasTarget, random = Math.random): readonly string[] {
  const targets = typeof target === 'string' ? [target] : target
  const models = targets.map((one) => (typeof one === 'string' ? one : one.model))
  const weights = targets.map((one) => (typeof one === 'string' ? 0 : one.weight))
  const first = drawIndex(weights, random())
  return [models[first] as string, ...models.filter((_, index) => index !== first)]
}

/** @param drawn from 0 up to, but without, 1 */
function drawIndex(weights: readonly number[], drawn: number): number {
  let rest = drawn * weights.reduce((sum, weight) => sum + weight, 0)
  const index = weights.findIndex((weight) => {
    rest -= weight
    return rest < 0
  })
  // Names without weights are tried in order.
  return Math.max(0, index)
}
