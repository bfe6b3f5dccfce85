/** Automata written as rules: a rule where ways part or meet, and stretches without a choice in one. */

import {
  characters,
  choice,
  type Expression,
  impossible,
  nothing,
  sequence,
  text,
} from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { character, plain } from '../schema/json.ts'
import type { Automaton, Edge, State } from './automaton.ts'
import { lastCharacter, overlap, type Range } from './ranges.ts'

/** The texts as they are. */
export const textRule = (automaton: Automaton, grammar: Grammar): Expression =>
  grammar.of(automaton, () => rulesOf(automaton, grammar, nothing, (ranges) => characters(...ranges)))

/** The texts as JSON writes them in a string, with the quote at the end. */
export const stringRule = (automaton: Automaton, grammar: Grammar): Expression =>
  grammar.of(automaton, () => rulesOf(automaton, grammar, text('"'), (ranges) => inString(ranges, grammar)))

/** Each of these words once, with what is behind it; what they begin with in common is not said twice. */
export function wordsRule(
  words: readonly (readonly [word: string, behind: Expression])[],
  grammar: Grammar,
): Expression {
  const [[first, behind] = ['', impossible], ...others] = words
  if (others.length === 0) return sequence(text(first), behind)
  let common = first.length
  for (const [word] of others) while (!word.startsWith(first.slice(0, common))) common--
  // Not between the halves of a pair.
  if (!first.slice(0, common).isWellFormed()) common--
  const groups = new Map<number | undefined, (readonly [string, Expression])[]>()
  for (const [word, behind] of words) {
    const rest = word.slice(common)
    const group = groups.get(rest.codePointAt(0))
    if (group) group.push([rest, behind])
    else groups.set(rest.codePointAt(0), [[rest, behind]])
  }
  const options = [...groups.values()].map((group) => wordsRule(group, grammar))
  return grammar.define('words', sequence(text(first.slice(0, common)), choice(...options)))
}

function rulesOf(
  { states }: Automaton,
  grammar: Grammar,
  end: Expression,
  spell: (ranges: readonly Range[]) => Expression,
): Expression {
  const choices = states.map(({ edges }) => groupByNext(edges))
  const entries = states.map(() => 0)
  for (const groups of choices) for (const next of groups.keys()) entries[next] = (entries[next] ?? 0) + 1
  const isStretch = (at: number) =>
    at !== 0 && entries[at] === 1 && choices[at]?.size === 1 && !states[at]?.accepting
  const rules = new Map<number, Expression>()
  const waiting: (() => void)[] = []

  /** Bodies are made one after the other, not inside each other: chains are long. */
  const ruleOf = (at: number): Expression => {
    const known = rules.get(at)
    if (known) return known
    const { rule, become } = grammar.reserve('text')
    rules.set(at, rule)
    waiting.push(() => {
      const options = [...(choices[at] ?? [])].map(([next, ranges]) => follow(ranges, next))
      become(choice(...options, ...((states[at] as State).accepting ? [end] : [])))
    })
    return rule
  }
  const follow = (ranges: readonly Range[], next: number): Expression => {
    const parts = [spell(ranges)]
    let at = next
    for (; isStretch(at); ) {
      const [[to, through] = [0, []]] = choices[at] ?? []
      parts.push(spell(through))
      at = to
    }
    const last = states[at] as State
    return sequence(...parts, last.accepting && last.edges.length === 0 ? end : ruleOf(at))
  }

  const first = ruleOf(0)
  for (let next = waiting.pop(); next; next = waiting.pop()) next()
  return first
}

function groupByNext(edges: readonly Edge[]): ReadonlyMap<number, readonly Range[]> {
  const groups = new Map<number, Range[]>()
  for (const { low, high, next } of edges) {
    const group = groups.get(next)
    if (group) group.push([low, high])
    else groups.set(next, [[low, high]])
  }
  return groups
}

/** Escapes of one letter, by code. */
const short = new Map([
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [0x22, '"'],
  [0x5c, '\\'],
])
const controls = Array.from({ length: 0x20 }, (_, code) => code)

/** One of these characters: as itself where it may stand so, else with its escape. */
function inString(ranges: readonly Range[], grammar: Grammar): Expression {
  const isIn = (code: number) => ranges.some(([low, high]) => low <= code && code <= high)
  if (ranges.length === 1 && ranges[0]?.[0] === 0 && ranges[0][1] === lastCharacter) return character(grammar)
  const bare = overlap(ranges, plain)
  const letters = [...short].flatMap(([code, letter]) => (isIn(code) ? [letter.charCodeAt(0)] : []))
  const others = controls.filter((code) => !short.has(code) && isIn(code))
  const escapes = [
    ...(letters.length > 0 ? [characters(...letters.map((code): Range => [code, code]))] : []),
    ...(others.length > 0 ? [sequence(text('u00'), choice(...others.map(inHex)))] : []),
  ]
  const escaped =
    escapes.length > 0 ? [sequence(text('\\'), grammar.define('escape', choice(...escapes)))] : []
  const options = [...(bare.length > 0 ? [characters(...bare)] : []), ...escaped]
  return options.length > 0 ? choice(...options) : impossible
}

const inHex = (code: number): Expression => text(code.toString(16).padStart(2, '0'))
