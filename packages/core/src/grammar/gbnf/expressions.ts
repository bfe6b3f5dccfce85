/** Expressions that grammar rules consist of. A productive expression matches at least one text. */
import { drain } from '../../util/drain.ts'
import type { Range } from '../automata/ranges.ts'

export type Expression =
  | { readonly kind: 'text'; readonly text: string }
  /** Matches one code point in these ranges. */
  | { readonly kind: 'characters'; readonly ranges: readonly Range[] }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'sequence'; readonly parts: readonly Expression[] }
  /** A choice without options matches no text, not even the empty text. */
  | { readonly kind: 'choice'; readonly options: readonly Expression[] }
  | { readonly kind: 'repeat'; readonly of: Expression; readonly min: number; readonly max: number }

export type Rules = ReadonlyMap<string, Expression>

export const text = (text: string): Expression => ({ kind: 'text', text })
export const characters = (...ranges: readonly Range[]): Expression => ({ kind: 'characters', ranges })
export const sequence = (...parts: readonly Expression[]): Expression => ({ kind: 'sequence', parts })
export const choice = (...options: readonly Expression[]): Expression => ({ kind: 'choice', options })
export const repeat = (of: Expression, min: number, max: number): Expression => ({
  kind: 'repeat',
  of,
  min,
  max,
})
export const optional = (of: Expression): Expression => repeat(of, 0, 1)
export const empty: Expression = sequence()
export const impossible: Expression = choice()

/** Whether an expression is empty. Does not look into the rules that it refers to. */
export const isEmptyExpression = (expression: Expression): boolean =>
  (expression.kind === 'text' && expression.text === '') ||
  (expression.kind === 'sequence' && expression.parts.every(isEmptyExpression))

/** Finds all rules with a property that depends on other rules (the least fixed point of `predicate`). */
export function findRules(
  rules: Rules,
  predicate: (body: Expression, known: ReadonlySet<string>) => boolean,
): ReadonlySet<string> {
  const known = new Set<string>()
  const users = new Map<string, string[]>([...rules.keys()].map((name) => [name, []]))
  for (const [name, body] of rules) for (const used of collectRuleNames(body)) users.get(used)?.push(name)
  const pending = [...rules.keys()]
  for (const name of drain(pending)) {
    if (known.has(name) || !predicate(rules.get(name) as Expression, known)) continue
    known.add(name)
    for (const user of users.get(name) ?? []) pending.push(user)
  }
  return known
}

/** Whether an expression matches at least one text. */
export function isProductive(expression: Expression, productive: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case 'text':
      return true
    case 'characters':
      return expression.ranges.length > 0
    case 'rule':
      return productive.has(expression.name)
    case 'sequence':
      return expression.parts.every((part) => isProductive(part, productive))
    case 'choice':
      return expression.options.some((option) => isProductive(option, productive))
    case 'repeat':
      return expression.min === 0 || isProductive(expression.of, productive)
  }
}

/** Removes unproductive alternatives, which would lead the model into a dead end. */
export function prune(expression: Expression, productive: ReadonlySet<string>): Expression {
  switch (expression.kind) {
    case 'sequence':
      return { ...expression, parts: expression.parts.map((part) => prune(part, productive)) }
    case 'choice': {
      const options = expression.options.filter((option) => isProductive(option, productive))
      return { ...expression, options: options.map((option) => prune(option, productive)) }
    }
    case 'repeat':
      return isProductive(expression.of, productive)
        ? { ...expression, of: prune(expression.of, productive) }
        : empty
    default:
      return expression
  }
}

export function* collectRuleNames(expression: Expression): Iterable<string> {
  if (expression.kind === 'rule') yield expression.name
  else if (expression.kind === 'sequence') for (const part of expression.parts) yield* collectRuleNames(part)
  else if (expression.kind === 'choice')
    for (const option of expression.options) yield* collectRuleNames(option)
  else if (expression.kind === 'repeat') yield* collectRuleNames(expression.of)
}

export function renameRules(expression: Expression, ruleOf: (name: string) => Expression): Expression {
  switch (expression.kind) {
    case 'rule':
      return ruleOf(expression.name)
    case 'sequence':
      return { ...expression, parts: expression.parts.map((part) => renameRules(part, ruleOf)) }
    case 'choice':
      return { ...expression, options: expression.options.map((option) => renameRules(option, ruleOf)) }
    case 'repeat':
      return { ...expression, of: renameRules(expression.of, ruleOf) }
    default:
      return expression
  }
}

/** Counts the elements that llama.cpp makes of an expression after it has expanded repetitions. */
export function countElements(expression: Expression): number {
  switch (expression.kind) {
    case 'text':
      return expression.text.length
    case 'characters':
      return 2 * expression.ranges.length
    case 'rule':
      return 1
    case 'sequence':
      return expression.parts.reduce((sum, part) => sum + countElements(part), 0)
    case 'choice':
      return expression.options.reduce((sum, option) => sum + countElements(option) + 1, 1)
    case 'repeat': {
      const rest = expression.max === Number.POSITIVE_INFINITY ? 1 : expression.max - expression.min
      return expression.min * countElements(expression.of) + rest * (countElements(expression.of) + 3)
    }
  }
}
