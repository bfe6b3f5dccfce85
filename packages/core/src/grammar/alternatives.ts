/**
 * Options that begin alike, told apart where they differ. Native code keeps each way that is still open: of two that hold
 * each other and begin alike, there are two at the first level, four at the second, and a million at the twentieth.
 */
import { choice, type Expression, isNothing, nothing, sequence } from './expressions.ts'
import type { Grammar } from './grammar.ts'
import { space } from './json.ts'
import { write } from './write-gbnf.ts'

/** What is still to come, in order. */
type Way = readonly Expression[]

/** Where there are more, they stay as they are: to look at all of them would take too long. */
const maxWays = 100
const maxPlaces = 1_000

export class Alternatives {
  readonly #grammar: Grammar
  readonly #places = new Map<string, Expression>()

  constructor(grammar: Grammar) {
    this.#grammar = grammar
  }

  of(options: readonly Expression[]): Expression {
    const distinct = new Map(options.map((option) => [write(option), option]))
    return this.#byBeginning([...distinct.values()])
  }

  #byBeginning(options: readonly Expression[]): Expression {
    const ways = options.length > 1 && this.#places.size < maxPlaces ? this.#open(options) : undefined
    const groups = new Map<string, Way[]>()
    for (const way of ways ?? []) {
      const key = way[0] ? write(way[0]) : ''
      groups.set(key, [...(groups.get(key) ?? []), way])
    }
    if (groups.size === (ways?.length ?? 0)) return choice(...options)
    return choice(
      ...[...groups.values()].map((group) => {
        const [head] = group[0] ?? []
        return head ? sequence(head, this.#behind(group)) : nothing
      }),
    )
  }

  /** What follows the beginning that these have in common. */
  #behind(ways: readonly Way[]): Expression {
    const rests = ways.map(([, ...rest]) => sequence(...rest)).map((rest) => [write(rest), rest] as const)
    const distinct = new Map(rests)
    const key = [...distinct.keys()].join(' | ')
    const known = this.#places.get(key)
    if (known) return known
    const [first = nothing, ...others] = distinct.values()
    if (others.length === 0) return first
    const behind = this.#grammar.define('alternatives', this.#byBeginning([first, ...others]))
    this.#places.set(key, behind)
    return behind
  }

  /** By what comes first: a text, characters, or a rule that may hold itself. Nothing where there are too many. */
  #open(options: readonly Expression[]): readonly Way[] | undefined {
    const opened: Way[] = []
    const ahead: Way[] = options.map((option) => [option]).reverse()
    for (let way = ahead.pop(); way; way = ahead.pop()) {
      if (opened.length + ahead.length > maxWays) return undefined
      const [head, ...rest] = way
      const body = head?.kind === 'rule' ? this.#grammar.bodyOf(head.name) : undefined
      if (!head) opened.push(way)
      else if (isNothing(head)) ahead.push(rest)
      else if (body) ahead.push([body, ...rest])
      else if (head.kind === 'sequence') ahead.push([...head.parts, ...rest])
      else if (head.kind === 'choice')
        ahead.push(...head.options.map((option) => [option, ...rest]).reverse())
      else if (head.kind === 'repeat' && head.max === 1 && head.min === 0 && head !== space)
        ahead.push(rest, [head.of, ...rest])
      else opened.push(way)
    }
    return opened
  }
}
