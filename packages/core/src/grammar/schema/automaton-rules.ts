/**
 * Converts automata to GBNF. A state where paths branch or join becomes a rule. Chains of states are inlined.
 */
import { drain } from '../../util/drain.ts'
import { groupBy } from '../../util/group-by.ts'
import type { Automaton, DfaEdge, DfaState } from '../automata/automaton.ts'
import { intersectRanges, lastCharacter, type Range } from '../automata/ranges.ts'
import {
  characters,
  choice,
  type Expression,
  empty,
  impossible,
  sequence,
  text,
} from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { character, unescapedCharacters } from './json.ts'

/** Builds a rule that matches the texts of an automaton verbatim. */
export const buildTextRule = (automaton: Automaton, grammar: Grammar): Expression =>
  grammar.memoize(automaton, () => buildRules(automaton, grammar, empty, (ranges) => characters(...ranges)))

/** Builds a rule that matches the texts of an automaton in a JSON string, after the opening quote. */
export const buildStringRule = (automaton: Automaton, grammar: Grammar): Expression =>
  grammar.memoize(automaton, () =>
    buildRules(automaton, grammar, text('"'), (ranges) => toStringCharacters(ranges, grammar)),
  )

/** Builds a trie of words. After each word, the expression of that word follows. */
export function buildWordsRule(
  words: readonly (readonly [word: string, following: Expression])[],
  grammar: Grammar,
): Expression {
  const [[first, following] = ['', impossible], ...others] = words
  if (others.length === 0) return sequence(text(first), following)
  let common = first.length
  for (const [word] of others) while (!word.startsWith(first.slice(0, common))) common--
  // A common prefix must not split a surrogate pair.
  if (!first.slice(0, common).isWellFormed()) common--
  const rests = words.map(([word, following]) => [word.slice(common), following] as const)
  const groups = groupBy(rests, ([rest]) => rest.codePointAt(0))
  const options = [...groups.values()].map((group) => buildWordsRule(group, grammar))
  return grammar.define('words', sequence(text(first.slice(0, common)), choice(...options)))
}

function buildRules(
  { states }: Automaton,
  grammar: Grammar,
  end: Expression,
  toCharacters: (ranges: readonly Range[]) => Expression,
): Expression {
  const toExpression = (edges: readonly DfaEdge[]) => toCharacters(edges.map(({ low, high }) => [low, high]))
  const choices = states.map(({ edges }) => groupBy(edges, ({ next }) => next))
  const incomingCounts = states.map(() => 0)
  for (const groups of choices)
    for (const next of groups.keys()) incomingCounts[next] = (incomingCounts[next] ?? 0) + 1
  const isStretch = (at: number) =>
    at !== 0 && incomingCounts[at] === 1 && choices[at]?.size === 1 && !states[at]?.isAccepting
  const rules = new Map<number, Expression>()
  const pending: (() => void)[] = []

  /**
   * Returns the rule of a state. The rule's body is built later, from `pending`. Recursion from state to
   * state could overflow the call stack.
   */
  const ruleOf = (at: number): Expression => {
    const known = rules.get(at)
    if (known) return known
    const { rule, setBody } = grammar.reserve('text')
    rules.set(at, rule)
    pending.push(() => {
      const options = [...(choices[at] ?? [])].map(([next, edges]) => follow(edges, next))
      setBody(choice(...options, ...((states[at] as DfaState).isAccepting ? [end] : [])))
    })
    return rule
  }
  const follow = (edges: readonly DfaEdge[], next: number): Expression => {
    const parts = [toExpression(edges)]
    let at = next
    for (; isStretch(at); ) {
      const [[to, through] = [0, []]] = choices[at] ?? []
      parts.push(toExpression(through))
      at = to
    }
    const last = states[at] as DfaState
    return sequence(...parts, last.isAccepting && last.edges.length === 0 ? end : ruleOf(at))
  }

  const first = ruleOf(0)
  for (const build of drain(pending)) build()
  return first
}

/** Escapes of one character after the backslash, by code point. */
const shortEscapes = new Map([
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [0x22, '"'],
  [0x5c, '\\'],
])
const controls = Array.from({ length: 0x20 }, (_, code) => code)

/** Matches one of these characters inside a JSON string. Escapes characters only if JSON requires it. */
function toStringCharacters(ranges: readonly Range[], grammar: Grammar): Expression {
  const isIn = (code: number) => ranges.some(([low, high]) => low <= code && code <= high)
  if (ranges.length === 1 && ranges[0]?.[0] === 0 && ranges[0][1] === lastCharacter) return character(grammar)
  const bare = intersectRanges(ranges, unescapedCharacters)
  const letters = [...shortEscapes].flatMap(([code, letter]) => (isIn(code) ? [letter.charCodeAt(0)] : []))
  const others = controls.filter((code) => !shortEscapes.has(code) && isIn(code))
  const escapes = [
    ...(letters.length > 0 ? [characters(...letters.map((code): Range => [code, code]))] : []),
    ...(others.length > 0 ? [sequence(text('u00'), choice(...others.map(toHex)))] : []),
  ]
  const escaped =
    escapes.length > 0 ? [sequence(text('\\'), grammar.define('escape', choice(...escapes)))] : []
  const options = [...(bare.length > 0 ? [characters(...bare)] : []), ...escaped]
  return options.length > 0 ? choice(...options) : impossible
}

const toHex = (code: number): Expression => text(code.toString(16).padStart(2, '0'))
