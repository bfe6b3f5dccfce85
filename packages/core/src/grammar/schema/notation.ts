/**
 * How a grammar writes the values of a schema: as JSON, or as literals with bare names and strings between quote
 * tokens, such as `{city:<|"|>Oslo<|"|>,days:3}`. Numbers, lists, `true`, `false` and `null` are the same in both.
 */

import { isRecord } from '../../util/is-record.ts'
import { type Automaton, anyText, complement, intersect } from '../automata/automaton.ts'
import { compileFullMatch, compilePattern } from '../automata/pattern.ts'
import { complementRanges, type Range } from '../automata/ranges.ts'
import { characters, choice, type Expression, empty, optional, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { buildTextUpTo } from '../gbnf/text-up-to.ts'
import { buildStringRule, buildTextRule } from './automaton-rules.ts'
import * as json from './json.ts'
import type { StringShape } from './shape.ts'
import { buildStringAutomaton } from './strings.ts'

export interface Notation {
  /** Text before the name of a property. */
  readonly nameStart: string
  /** Writes the name of a property after `nameStart`, and the colon. */
  writeName(name: string): string
  /** Builds any of these names after `nameStart`, and the colon. */
  buildName(names: Automaton, grammar: Grammar): Expression
  buildString(shape: StringShape, grammar: Grammar): Expression
  writeValue(value: unknown): string
  buildAnyValue(grammar: Grammar): Expression
  buildAnyObject(grammar: Grammar): Expression
}

const isUnlimited = ({ min, max }: StringShape): boolean => min === 0 && max === Number.POSITIVE_INFINITY

export const jsonNotation: Notation = {
  nameStart: '"',
  writeName: (name) => `${JSON.stringify(name).slice(1)}:`,
  buildName: (names, grammar) => sequence(buildStringRule(names, grammar), text(':')),
  buildString(shape, grammar) {
    if (shape.texts !== anyText)
      return sequence(text('"'), buildStringRule(buildStringAutomaton(shape), grammar))
    if (isUnlimited(shape)) return json.anyString(grammar)
    return sequence(text('"'), grammar.repeat(json.character(grammar), shape.min, shape.max), text('"'))
  },
  writeValue: (value) => JSON.stringify(value),
  buildAnyValue: json.anyValue,
  buildAnyObject: json.anyObject,
}

/** Names that need no quotes. Undeclared names are limited to these. */
const bareName = compileFullMatch('[^\\s:,{}\\[\\]<>"]+')

/** @param quote the token before and after a string, which strings cannot contain */
export function createLiteralNotation(quote: string): Notation {
  const withoutQuote = complement(compilePattern(quote.replace(/[|]/g, '\\$&')))
  /** Without the character with which the quote begins, so that counting needs no automaton. */
  const countedCharacter = characters(...complementRanges([[0, 0], toRange(quote)]))
  const anyString = (grammar: Grammar): Expression =>
    grammar.defineOnce('literal-string', () =>
      sequence(
        text(quote),
        buildTextUpTo(grammar, quote, () => empty, false),
      ),
    )
  const notation: Notation = {
    nameStart: '',
    writeName: (name) => (/^[^\s:,{}[\]<>"]+$/.test(name) ? `${name}:` : `${quote}${name}${quote}:`),
    buildName: (names, grammar) => sequence(buildTextRule(intersect(names, bareName), grammar), text(':')),
    buildString(shape, grammar) {
      if (shape.texts === anyText && isUnlimited(shape)) return anyString(grammar)
      const content =
        shape.texts === anyText
          ? grammar.repeat(countedCharacter, shape.min, shape.max)
          : buildTextRule(intersect(buildStringAutomaton(shape), withoutQuote), grammar)
      return sequence(text(quote), content, text(quote))
    },
    writeValue(value) {
      if (typeof value === 'string') return quote + value + quote
      if (Array.isArray(value)) return `[${value.map(notation.writeValue).join(',')}]`
      if (!isRecord(value)) return JSON.stringify(value)
      const entries = Object.entries(value)
      return `{${entries.map(([name, one]) => notation.writeName(name) + notation.writeValue(one)).join(',')}}`
    },
    buildAnyValue: (grammar) =>
      grammar.defineOnce('literal-value', () =>
        choice(
          notation.buildAnyObject(grammar),
          sequence(text('['), optional(json.list(notation.buildAnyValue(grammar))), text(']')),
          anyString(grammar),
          json.anyNumber(grammar),
          ...['true', 'false', 'null'].map(text),
        ),
      ),
    buildAnyObject: (grammar) =>
      grammar.defineOnce('literal-object', () => {
        const name = notation.buildName(anyText, grammar)
        const member = sequence(name, json.space, notation.buildAnyValue(grammar))
        return sequence(text('{'), optional(json.list(member)), text('}'))
      }),
  }
  return notation
}

const toRange = (quote: string): Range => {
  const first = quote.codePointAt(0) as number
  return [first, first]
}
