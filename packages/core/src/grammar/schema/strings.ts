/**
 * String schemas: length, `pattern` and `format`. A string without `pattern` and `format` can contain every
 * JSON escape.
 */
import {
  type Automaton,
  accepts,
  anyText,
  buildLengthAutomaton,
  intersect,
  isEmpty,
  TooComplexError,
} from '../automata/automaton.ts'
import { compilePattern, PatternError } from '../automata/pattern.ts'
import type { WorkBudget } from '../automata/work-budget.ts'
import { buildFormatAutomaton, isFormat } from './formats.ts'
import { invalidKeyword, readCounts, readKeyword, type SchemaNode } from './keywords.ts'
import type { StringShape } from './shape.ts'

export function readString(node: SchemaNode, budget: WorkBudget): StringShape {
  const { min, max } = readCounts(node, 'minLength', 'maxLength')
  const [pattern, format] = [readKeyword(node, 'pattern'), readKeyword(node, 'format')]
  if (pattern !== undefined && typeof pattern !== 'string')
    throw invalidKeyword(node, 'pattern', 'must be a string', 'value')
  if (format !== undefined && typeof format !== 'string')
    throw invalidKeyword(node, 'format', 'must be a string', 'value')
  if (format !== undefined && !isFormat(format))
    throw invalidKeyword(node, 'format', `"${format}" is not supported`)
  const formatTexts =
    format === undefined
      ? anyText
      : budget.getAutomaton(`format ${format}`, () => buildFormatAutomaton(format))
  const patternTexts =
    pattern === undefined ? anyText : buildPatternAutomaton(node, 'pattern', pattern, budget)
  return {
    type: 'string',
    min,
    max,
    texts: withKeywordError(node, 'pattern', () => intersect(formatTexts, patternTexts)),
  }
}

/** Builds an automaton of the strings that contain a match of the pattern. Errors name `keyword`. */
export const buildPatternAutomaton = (
  node: SchemaNode,
  keyword: string,
  pattern: string,
  budget: WorkBudget,
): Automaton =>
  withKeywordError(node, keyword, () =>
    budget.getAutomaton(`pattern ${pattern}`, () => compilePattern(pattern, budget)),
  )

/** Rethrows errors of pattern compilation as an `LlmError` `invalid_request` that names the keyword. */
export function withKeywordError<T>(node: SchemaNode, keyword: string, build: () => T): T {
  try {
    return build()
  } catch (error) {
    if (error instanceof PatternError || error instanceof TooComplexError)
      throw invalidKeyword(node, keyword, `is not supported: ${error.message}`)
    throw error
  }
}

export const anyString: StringShape = {
  type: 'string',
  min: 0,
  max: Number.POSITIVE_INFINITY,
  texts: anyText,
}

export const intersectStrings = (a: StringShape, b: StringShape): StringShape => ({
  type: 'string',
  min: Math.max(a.min, b.min),
  max: Math.min(a.max, b.max),
  texts: intersect(a.texts, b.texts),
})

export const isStringEmpty = ({ min, max, texts }: StringShape): boolean => min > max || isEmpty(texts)

export function acceptsString({ min, max, texts }: StringShape, value: string): boolean {
  const length = [...value].length
  return length >= min && length <= max && accepts(texts, value)
}

/** Combines pattern and length limits in one automaton. Throws `TooComplexError`. */
export function buildStringAutomaton({ min, max, texts }: StringShape): Automaton {
  if (min === 0 && max === Number.POSITIVE_INFINITY) return texts
  try {
    return intersect(texts, buildLengthAutomaton(min, max))
  } catch (error) {
    if (!(error instanceof TooComplexError)) throw error
    throw new TooComplexError(
      `with "minLength" or "maxLength", ${error.message}. Leave them out, and check the length of the answer`,
    )
  }
}
