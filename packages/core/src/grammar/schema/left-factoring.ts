/**
 * Left factoring: alternatives with a common beginning share one copy of it. llama.cpp tracks every possible
 * parse. Two recursive alternatives with a common beginning would double the parses at each level, to a
 * million at level 20.
 */
import { drain } from '../../util/drain.ts'
import { groupBy } from '../../util/group-by.ts'
import { choice, type Expression, empty, isEmptyExpression, sequence } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { writeExpression } from '../gbnf/write-gbnf.ts'
import { space } from './json.ts'

/** One alternative, as a sequence of expressions. */
type ExpressionPath = readonly Expression[]

/** Path limits for one choice and for the whole grammar. Alternatives above a limit stay unfactored. */
const maxPaths = { perChoice: 100, total: 5_000 }

export class LeftFactoring {
  readonly #grammar: Grammar
  readonly #factored = new Map<string, Expression>()
  #budget = maxPaths.total

  constructor(grammar: Grammar) {
    this.#grammar = grammar
  }

  factor(options: readonly Expression[]): Expression {
    const common: Expression[] = []
    for (let rest = distinct(options); ; ) {
      const key = [...rest.keys()].join(' | ')
      const known = this.#factored.get(key)
      if (known) return sequence(...common, known)
      const paths = this.#expand([...rest.values()])
      const groups = groupByFirst(paths)
      if (groups.length === paths.length) return sequence(...common, choice(...rest.values()))
      if (groups.length > 1) {
        const options = groups.map((group) => this.#factorGroup(group))
        const rule = this.#grammar.define('alternatives', choice(...options))
        this.#factored.set(key, rule)
        return sequence(...common, rule)
      }
      const [group = []] = groups
      common.push(...(group[0]?.slice(0, 1) ?? []))
      rest = distinct(dropFirst(group))
    }
  }

  #factorGroup(group: readonly ExpressionPath[]): Expression {
    const [head] = group[0] ?? []
    return head ? sequence(head, this.factor(dropFirst(group))) : empty
  }

  /**
   * Expands alternatives until each begins with a text, characters or a recursive rule. Returns an empty list
   * if there is nothing to factor or a limit is reached.
   */
  #expand(options: readonly Expression[]): readonly ExpressionPath[] {
    const expanded: ExpressionPath[] = []
    const pending: ExpressionPath[] = options.map((option) => [option]).reverse()
    if (options.length < 2 || this.#budget <= 0) return []
    for (const path of drain(pending)) {
      if (expanded.length + pending.length >= maxPaths.perChoice) return []
      const [head, ...rest] = path
      const body = head?.kind === 'rule' ? this.#grammar.getBody(head.name) : undefined
      if (!head) expanded.push(path)
      else if (isEmptyExpression(head)) pending.push(rest)
      else if (body) pending.push([body, ...rest])
      else if (head.kind === 'sequence') pending.push([...head.parts, ...rest])
      else if (head.kind === 'choice')
        pending.push(...head.options.map((option) => [option, ...rest]).reverse())
      else if (head.kind === 'repeat' && head.max === 1 && head.min === 0 && head !== space)
        pending.push(rest, [head.of, ...rest])
      else expanded.push(path)
    }
    this.#budget -= expanded.length
    return expanded
  }
}

/** Removes alternatives that have the same GBNF. */
const distinct = (options: readonly Expression[]): ReadonlyMap<string, Expression> =>
  new Map(options.map((option) => [writeExpression(option), option]))

const groupByFirst = (paths: readonly ExpressionPath[]): readonly (readonly ExpressionPath[])[] => [
  ...groupBy(paths, ([first]) => (first ? writeExpression(first) : '')).values(),
]

const dropFirst = (paths: readonly ExpressionPath[]): readonly Expression[] =>
  paths.map(([, ...rest]) => sequence(...rest))
