/**
 * Whether native code can work with a grammar that a user wrote. llama.cpp goes through the beginnings of rules
 * by calling itself, sees left recursion only where a rule is plainly empty, and tries all ways that a text can be
 * taken in one after the other: each can take for ever, or the process with it.
 */
import { invalidRequest, type LlmError } from '../../errors.ts'
import {
  collectRuleNames,
  countElements,
  type Expression,
  findRules,
  isEmptyExpression,
  type Rules,
} from './expressions.ts'
import { grammarLimits } from './grammar.ts'
import { readGbnf } from './read-gbnf.ts'

export const checkLimits = {
  rules: 10_000,
  /** Rules and groups that begin with each other: native code calls itself for each. */
  chain: 600,
  /** Ways to begin a rule, through all rules that it can begin with: each is held against each token of the vocabulary. */
  ways: 1_000,
  /** Optional parts in a row: a text of their characters can be taken in two ways for each. */
  optionals: 12,
} as const

/** Its rules. Throws `invalid_request` with what is wrong. */
export function checkGrammar(source: string): Rules {
  const rules = readGbnf(source)
  if (!rules.has('root')) throw invalidGrammar('it has no rule root')
  if (rules.size > checkLimits.rules) throw invalidGrammar(`it has more than ${checkLimits.rules} rules`)
  let size = 0
  for (const [name, body] of rules) {
    size += countElements(body)
    for (const used of collectRuleNames(body))
      if (!rules.has(used)) throw invalidGrammar(`${name} asks for ${used}, which is no rule`)
  }
  if (size > grammarLimits.elements) throw invalidGrammar('its repetitions make it too large')
  const nullable = findRules(rules, isNullable)
  for (const [name, body] of rules) checkRepeats(name, body, nullable)
  new FirstSetChecker(rules, nullable).check()
  return rules
}

const invalidGrammar = (what: string): LlmError =>
  invalidRequest(`The grammar cannot be used: ${what}.`, { issue: 'value' })

/** Whether it takes the empty text. */
function isNullable(expression: Expression, nullable: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case 'text':
      return expression.text === ''
    case 'characters':
      return false
    case 'rule':
      return nullable.has(expression.name)
    case 'sequence':
      return expression.parts.every((part) => isNullable(part, nullable))
    case 'choice':
      return expression.options.some((option) => isNullable(option, nullable))
    case 'repeat':
      return expression.min === 0 || isNullable(expression.of, nullable)
  }
}

/** Of nothing, as often as one likes; and runs of parts that may each be there or not. */
function checkRepeats(name: string, expression: Expression, nullable: ReadonlySet<string>): void {
  if (expression.kind === 'repeat') {
    if (expression.max > 1 && isNullable(expression.of, nullable))
      throw invalidGrammar(`${name} repeats what can be empty`)
    checkRepeats(name, expression.of, nullable)
  }
  if (expression.kind === 'choice')
    for (const option of expression.options) checkRepeats(name, option, nullable)
  if (expression.kind === 'sequence') {
    let run = 0
    for (const part of expression.parts) {
      checkRepeats(name, part, nullable)
      run = isNullable(part, nullable) && !isEmptyExpression(part) ? run + 1 : 0
      if (run > checkLimits.optionals)
        throw invalidGrammar(
          `${name} has more than ${checkLimits.optionals} optional parts in a row; use {0,n}`,
        )
    }
  }
}

/** How a rule, or a part of one, can begin. */
interface FirstSetSize {
  /** In how many ways. */
  readonly ways: number
  /** How many rules and groups begin with each other there. */
  readonly chain: number
}

const deepen = ({ ways, chain }: FirstSetSize): FirstSetSize => ({ ways, chain: chain + 1 })

const tooDeep = (): LlmError =>
  invalidGrammar(`more than ${checkLimits.chain} groups and rules begin with each other`)

/** What rules can begin with: depth first, each rule once, the sums kept. */
class FirstSetChecker {
  readonly #rules: Rules
  readonly #nullable: ReadonlySet<string>
  readonly #known = new Map<string, FirstSetSize>()
  readonly #inProgress = new Set<string>()

  constructor(rules: Rules, nullable: ReadonlySet<string>) {
    this.#rules = rules
    this.#nullable = nullable
  }

  check(): void {
    for (const name of this.#rules.keys()) this.#measureRule(name)
  }

  #measureRule(name: string): FirstSetSize {
    const known = this.#known.get(name)
    if (known) return known
    if (this.#inProgress.has(name)) throw invalidGrammar(`${name} begins with itself`)
    if (this.#inProgress.size > checkLimits.chain) throw tooDeep()
    this.#inProgress.add(name)
    const size = this.#measure(this.#rules.get(name) as Expression)
    if (size.ways > checkLimits.ways)
      throw invalidGrammar(`${name} can begin in more than ${checkLimits.ways} ways`)
    if (size.chain > checkLimits.chain) throw tooDeep()
    this.#inProgress.delete(name)
    this.#known.set(name, size)
    return size
  }

  #measure(expression: Expression): FirstSetSize {
    switch (expression.kind) {
      case 'text':
      case 'characters':
        return { ways: 1, chain: 0 }
      case 'rule':
        return this.#measureRule(expression.name)
      // A rule of its own each, in native code.
      case 'choice':
        return deepen(this.#measureAny(expression.options))
      case 'repeat':
        return deepen(this.#measureAny(expression.max > 0 ? [expression.of] : []))
      case 'sequence': {
        const last = expression.parts.findIndex((part) => !isNullable(part, this.#nullable))
        return this.#measureAny(last === -1 ? expression.parts : expression.parts.slice(0, last + 1))
      }
    }
  }

  #measureAny(expressions: readonly Expression[]): FirstSetSize {
    const all = expressions.map((expression) => this.#measure(expression))
    return {
      ways: all.reduce((sum, { ways }) => sum + ways, 0),
      chain: all.reduce((max, { chain }) => Math.max(max, chain), 0),
    }
  }
}
