/**
 * Compiles regular expressions (ECMA-262 with the flag `u`) to automata. Supports characters, escapes,
 * `\d`, `\w`, `\s` and their complements, classes, `.`, groups, `|`, quantifiers, `^` and `$`. Rejects
 * lookaround, back references, `\b` and `\p{…}`.
 */
import { type AST, RegExpParser } from '@eslint-community/regexpp'
import type { Automaton } from './automaton.ts'
import { Nfa } from './nfa.ts'
import { anyCharacter, complementRanges, type Range } from './ranges.ts'
import { WorkBudget } from './work-budget.ts'

/**
 * Thrown for an invalid or unsupported pattern. The message is a clause that an error message can contain.
 */
export class PatternError extends Error {}

const maxLength = 4_000
const maxDepth = 200

/** Builds an automaton of the texts that contain a match. Throws `PatternError` and `TooComplexError`. */
export function compilePattern(pattern: string, budget = new WorkBudget()): Automaton {
  const { alternatives } = parse(pattern)
  const nfa = new Nfa(budget)
  const [first, last] = [nfa.addNode(), nfa.addNode()]
  nfa.addEdge(first, anyCharacter, first)
  nfa.addEdge(last, anyCharacter, last)
  new NfaBuilder(nfa).addAlternatives(alternatives, first, last)
  return nfa.toAutomaton(first, last)
}

/** Builds an automaton of the texts that match as a whole. Throws `PatternError` and `TooComplexError`. */
export function compileFullMatch(pattern: string): Automaton {
  // A pattern such as `a)|(b` is valid only inside of another group.
  parse(pattern)
  return compilePattern(`^(?:${pattern})$`)
}

function parse(pattern: string): AST.Pattern {
  if (pattern.length > maxLength) throw new PatternError(`it is longer than ${maxLength} characters`)
  const withFlag = parseAs(pattern, { unicode: true })
  // Some patterns in schemas contain escapes that are valid only without `u`, such as `\-`.
  const parsed = withFlag ?? (differsWithoutFlag.test(pattern) ? undefined : parseAs(pattern, {}))
  if (!parsed)
    throw new PatternError('it is not a valid ECMA-262 regular expression, or is nested too deeply')
  return parsed
}

/** Matches surrogates, and escapes whose meaning depends on the flag `u`. */
const differsWithoutFlag = /[\ud800-\udfff]|\\(?:u\{|u[dD][89a-fA-F]|[pPk1-9])/

function parseAs(pattern: string, flags: { unicode?: boolean }): AST.Pattern | undefined {
  try {
    return new RegExpParser().parsePattern(pattern, 0, pattern.length, flags)
  } catch {
    // The cause is a syntax error, or a stack overflow, because the parser recurses for each group.
    return undefined
  }
}

class NfaBuilder {
  readonly #nfa: Nfa
  #depth = 0

  constructor(nfa: Nfa) {
    this.#nfa = nfa
  }

  addAlternatives(options: readonly AST.Alternative[], from: number, to: number): void {
    if (++this.#depth > maxDepth)
      throw new PatternError(`its groups are nested more than ${maxDepth} levels deep`)
    for (const { elements } of options) {
      let at = from
      for (const element of elements) at = this.#add(element, at)
      this.#nfa.addEpsilonEdge(at, to)
    }
    this.#depth--
  }

  /** Adds an element after the node `from`. Returns the node after the element. */
  #add(element: AST.Element, from: number): number {
    if (element.type === 'Quantifier') return this.#repeat(element, from)
    const to = this.#nfa.addNode()
    switch (element.type) {
      case 'Group':
        if (element.modifiers) throw unsupportedSyntax(element)
        this.addAlternatives(element.alternatives, from, to)
        break
      case 'CapturingGroup':
        this.addAlternatives(element.alternatives, from, to)
        break
      case 'Assertion':
        if (element.kind !== 'start' && element.kind !== 'end') throw unsupportedSyntax(element)
        this.#nfa.addEpsilonEdge(from, to, element.kind)
        break
      default:
        for (const range of toRanges(element)) this.#nfa.addEdge(from, range, to)
    }
    return to
  }

  #repeat({ element, min, max }: AST.Quantifier, from: number): number {
    let at = from
    for (let count = 0; count < min; count++) at = this.#add(element, at)
    if (min === max) return at
    const to = this.#nfa.addNode()
    if (max === Number.POSITIVE_INFINITY) {
      this.#nfa.addEpsilonEdge(this.#add(element, to), to)
    } else
      for (let count = min; count < max; count++) {
        this.#nfa.addEpsilonEdge(at, to)
        at = this.#add(element, at)
      }
    this.#nfa.addEpsilonEdge(at, to)
    return to
  }
}

const digits: readonly Range[] = [[0x30, 0x39]]
const lineEnds: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]
const sets: Readonly<Record<'any' | 'digit' | 'word' | 'space', readonly Range[]>> = {
  any: complementRanges(lineEnds),
  digit: digits,
  word: [...digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]],
  /** The characters that ECMA-262 calls WhiteSpace and LineTerminator. */
  space: [
    ...lineEnds,
    [0x09, 0x09],
    [0x0b, 0x0c],
    [0x20, 0x20],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ],
}

function toRanges(element: AST.Element | AST.CharacterClassElement): readonly Range[] {
  switch (element.type) {
    case 'Character':
      return [[element.value, element.value]]
    case 'CharacterClassRange':
      return [[element.min.value, element.max.value]]
    case 'CharacterClass': {
      const ranges = element.elements.flatMap((member) => toRanges(member))
      return element.negate ? complementRanges(ranges) : ranges
    }
    case 'CharacterSet':
      if (element.kind === 'property') throw unsupportedSyntax(element)
      return element.kind !== 'any' && element.negate
        ? complementRanges(sets[element.kind])
        : sets[element.kind]
    default:
      throw unsupportedSyntax(element)
  }
}

const unsupportedSyntax = ({ raw }: AST.Node) =>
  new PatternError(`it contains ${raw.slice(0, 20).toWellFormed()}`)
