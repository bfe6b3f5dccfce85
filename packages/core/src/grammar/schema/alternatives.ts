/**
 * Options that begin alike, told apart where they differ. Native code keeps each way that is still open: of two that hold
 * each other and begin alike, there are two at the first level, four at the second, and a million at the twentieth.
 */
import { choice, type Expression, isNothing, nothing, sequence } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { write } from '../gbnf/write-gbnf.ts'
import { space } from './json.ts'

/** What is still to come, in order. */
type Way = readonly Expression[]

/** Where there are more, options stay as they are: at one place, and in all. */
const maxWays = { atOnce: 100, inAll: 5_000 }

export class Alternatives {
  readonly #grammar: Grammar
  readonly #places = new Map<string, Expression>()
  #left = maxWays.inAll

  constructor(grammar: Grammar) {
    this.#grammar = grammar
  }

  of(options: readonly Expression[]): Expression {
    const common: Expression[] = []
    for (let rest = distinct(options); ; ) {
      const key = [...rest.keys()].join(' | ')
      const known = this.#places.get(key)
      if (known) return sequence(...common, known)
      const ways = this.#open([...rest.values()])
      const groups = byBeginning(ways)
      if (groups.length === ways.length) return sequence(...common, choice(...rest.values()))
      if (groups.length > 1) {
        const options = groups.map((group) => this.#goOn(group))
        const place = this.#grammar.define('alternatives', choice(...options))
        this.#places.set(key, place)
        return sequence(...common, place)
      }
      const [group = []] = groups
      common.push(...(group[0]?.slice(0, 1) ?? []))
      rest = distinct(behind(group))
    }
  }

  #goOn(group: readonly Way[]): Expression {
    const [head] = group[0] ?? []
    return head ? sequence(head, this.of(behind(group))) : nothing
  }

  /** By what comes first: a text, characters, or a rule that may hold itself. None where there is nothing to tell apart. */
  #open(options: readonly Expression[]): readonly Way[] {
    const opened: Way[] = []
    const ahead: Way[] = options.map((option) => [option]).reverse()
    if (options.length < 2 || this.#left <= 0) return []
    for (let way = ahead.pop(); way; way = ahead.pop()) {
      if (opened.length + ahead.length >= maxWays.atOnce) return []
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
    this.#left -= opened.length
    return opened
  }
}

/** By how they are written: each once. */
const distinct = (options: readonly Expression[]): ReadonlyMap<string, Expression> =>
  new Map(options.map((option) => [write(option), option]))

function byBeginning(ways: readonly Way[]): readonly (readonly Way[])[] {
  const groups = new Map<string, Way[]>()
  for (const way of ways) {
    const beginning = way[0] ? write(way[0]) : ''
    const group = groups.get(beginning)
    if (group) group.push(way)
    else groups.set(beginning, [way])
  }
  return [...groups.values()]
}

const behind = (ways: readonly Way[]): readonly Expression[] => ways.map(([, ...rest]) => sequence(...rest))
