/** Strings: their length, patterns and formats. Where they have none, every escape of JSON is taken. */
import {
  type Automaton,
  accepts,
  anyText,
  intersect,
  isEmpty,
  ofLength,
  TooComplex,
} from '../automata/automaton.ts'
import type { Effort } from '../automata/effort.ts'
import { PatternError, search } from '../automata/pattern.ts'
import { stringRule } from '../automata/spell.ts'
import { type Expression, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { formatAutomaton, isFormat } from './formats.ts'
import * as json from './json.ts'
import { type Node, read, readCounts, refuse } from './keywords.ts'

export interface StringShape {
  readonly type: 'string'
  /** In code points. */
  readonly min: number
  readonly max: number
  readonly texts: Automaton
}

export function readString(node: Node, effort: Effort): StringShape {
  const { min, max } = readCounts(node, 'minLength', 'maxLength')
  const [pattern, format] = [read(node, 'pattern'), read(node, 'format')]
  if (pattern !== undefined && typeof pattern !== 'string')
    throw refuse(node, 'pattern', 'must be a string', 'value')
  if (format !== undefined && typeof format !== 'string')
    throw refuse(node, 'format', 'must be a string', 'value')
  if (format !== undefined && !isFormat(format)) throw refuse(node, 'format', `"${format}" is not supported`)
  const formatted =
    format === undefined ? anyText : effort.automaton(`format ${format}`, () => formatAutomaton(format))
  const found = pattern === undefined ? anyText : patternAutomaton(node, 'pattern', pattern, effort)
  return { type: 'string', min, max, texts: keep(node, 'pattern', () => intersect(formatted, found)) }
}

/** Texts in which the pattern is found; it stands at this keyword. */
export const patternAutomaton = (node: Node, keyword: string, pattern: string, effort: Effort): Automaton =>
  keep(node, keyword, () => effort.automaton(`pattern ${pattern}`, () => search(pattern, effort)))

/** Refuses the keyword by name where its texts cannot be told apart, or not with so little effort. */
export function keep<T>(node: Node, keyword: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof PatternError || error instanceof TooComplex)
      throw refuse(node, keyword, `is not supported: ${error.message}`)
    throw error
  }
}

export const anyString: StringShape = {
  type: 'string',
  min: 0,
  max: Number.POSITIVE_INFINITY,
  texts: anyText,
}

export const meetStrings = (a: StringShape, b: StringShape): StringShape => ({
  type: 'string',
  min: Math.max(a.min, b.min),
  max: Math.min(a.max, b.max),
  texts: intersect(a.texts, b.texts),
})

export const isStringEmpty = ({ min, max, texts }: StringShape): boolean => min > max || isEmpty(texts)

export function hasString({ min, max, texts }: StringShape, value: string): boolean {
  const length = [...value].length
  return length >= min && length <= max && accepts(texts, value)
}

/** Patterns and lengths together. Throws `TooComplex`. */
export const stringAutomaton = ({ min, max, texts }: StringShape): Automaton =>
  min === 0 && max === Number.POSITIVE_INFINITY ? texts : intersect(texts, ofLength(min, max))

export function stringExpression(shape: StringShape, grammar: Grammar): Expression {
  if (shape.texts !== anyText) return sequence(text('"'), stringRule(stringAutomaton(shape), grammar))
  if (shape.min === 0 && shape.max === Number.POSITIVE_INFINITY) return json.anyString(grammar)
  return sequence(text('"'), grammar.repeat(json.character(grammar), shape.min, shape.max), text('"'))
}
