/** A shape describes the values of one JSON type that a schema accepts, with all their constraints. */
import type { Automaton } from '../automata/automaton.ts'
import type { WorkBudget } from '../automata/work-budget.ts'
import type { Conjunction } from './conjunction.ts'
import type { NumberBound } from './decimals.ts'

export type Shape = NumberShape | StringShape | ArrayShape | ObjectShape | ValuesShape

export interface NumberShape {
  readonly type: 'number'
  readonly isInteger: boolean
  readonly min: NumberBound
  readonly max: NumberBound
  readonly multiples: readonly number[]
}

export interface StringShape {
  readonly type: 'string'
  /** Minimum length in code points. `max` has the same unit. */
  readonly min: number
  readonly max: number
  readonly texts: Automaton
}

export interface ArrayShape {
  readonly type: 'array'
  /** Schemas of the first items, by position. */
  readonly first: readonly Conjunction[]
  readonly rest: Conjunction
  readonly min: number
  readonly max: number
}

export interface ObjectShape {
  readonly type: 'object'
  readonly properties: ReadonlyMap<string, Conjunction>
  /** Disjoint sets of undeclared names, and the schemas of their values. */
  readonly otherProperties: readonly PropertySet[]
  readonly required: readonly string[]
  readonly min: number
  readonly max: number
  /** JSON pointer to the schema that bounds the number of properties, for error messages. */
  readonly at: string
}

export interface PropertySet {
  readonly names: Automaton
  readonly value: Conjunction
  /** Whether `patternProperties` or `additionalProperties` covers these names, even with `true`. */
  readonly isExplicit: boolean
}

/** Exactly these values, from `enum`, `const`, or the types `null` and `boolean`. */
export interface ValuesShape {
  readonly type: 'values'
  readonly values: readonly unknown[]
}

/** Resolves nested schemas for `readObject`. */
export interface ShapeSource {
  readonly budget: WorkBudget
  resolve(conjunction: Conjunction): readonly Shape[]
}
