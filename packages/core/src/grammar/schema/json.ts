/**
 * Grammar rules of JSON (RFC 8259). White space is limited to one optional space after `,` and `:`, because
 * models can repeat optional white space without end.
 */
import type { Range } from '../automata/ranges.ts'
import { characters, choice, type Expression, optional, repeat, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'

/**
 * Characters that need no escape in a string. Excludes quotes, backslashes, control characters and
 * surrogates.
 */
export const unescapedCharacters: readonly Range[] = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0xd7ff],
  [0xe000, 0x10ffff],
]
/** Optional space after `,` and `:`. */
export const space = optional(text(' '))

const codeOf = (letter: string) => letter.codePointAt(0) as number
const oneOf = (letters: string): Expression =>
  characters(...[...letters].map((letter): Range => [codeOf(letter), codeOf(letter)]))
const hex = characters([0x30, 0x39], [0x41, 0x46], [0x61, 0x66])

/** Accepts surrogate escapes only in pairs, because a single surrogate is not a character. */
const escapeSequence: Expression = (() => {
  const noSurrogate = choice(
    sequence(oneOf('0123456789abcefABCEF'), hex),
    sequence(oneOf('dD'), oneOf('01234567')),
  )
  const high = sequence(oneOf('dD'), oneOf('89abAB'), hex, hex)
  const low = sequence(oneOf('dD'), oneOf('cdefCDEF'), hex, hex)
  const code = choice(sequence(noSurrogate, hex, hex), sequence(high, text('\\u'), low))
  return choice(oneOf('"\\/bfnrt'), sequence(text('u'), code))
})()

/** One character of a string, unescaped or with any valid escape. */
export const character = (grammar: Grammar): Expression =>
  grammar.defineOnce('character', () =>
    choice(characters(...unescapedCharacters), sequence(text('\\'), escapeSequence)),
  )

export const anyString = (grammar: Grammar): Expression =>
  grammar.defineOnce('string', () =>
    sequence(text('"'), repeat(character(grammar), 0, Number.POSITIVE_INFINITY), text('"')),
  )

const digit = characters([0x30, 0x39])

/**
 * An integer of up to 20 digits. The number of digits is limited, because models can repeat digits without
 * end, and very long numbers parse as Infinity.
 */
export const anyInteger = (grammar: Grammar): Expression =>
  grammar.defineOnce('integer', () =>
    sequence(
      optional(text('-')),
      choice(text('0'), sequence(characters([0x31, 0x39]), repeat(digit, 0, 19))),
    ),
  )

export const anyNumber = (grammar: Grammar): Expression =>
  grammar.defineOnce('number', () =>
    sequence(
      anyInteger(grammar),
      optional(sequence(text('.'), repeat(digit, 1, 20))),
      optional(sequence(oneOf('eE'), optional(oneOf('+-')), repeat(digit, 1, 2))),
    ),
  )

export const anyValue = (grammar: Grammar): Expression =>
  grammar.defineOnce('value', () =>
    choice(
      anyObject(grammar),
      sequence(text('['), optional(list(anyValue(grammar))), text(']')),
      anyString(grammar),
      anyNumber(grammar),
      ...['true', 'false', 'null'].map(text),
    ),
  )

export const anyObject = (grammar: Grammar): Expression =>
  grammar.defineOnce('object', () => {
    const member = sequence(anyString(grammar), text(':'), space, anyValue(grammar))
    return sequence(text('{'), optional(list(member)), text('}'))
  })

export const list = (of: Expression): Expression =>
  sequence(of, repeat(sequence(text(','), space, of), 0, Number.POSITIVE_INFINITY))
