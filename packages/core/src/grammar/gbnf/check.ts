/**
 * Checks that llama.cpp can safely use a grammar that a user wrote. llama.cpp expands the beginnings of rules
 * recursively and tries all parses of a text in turn. Its own check misses left recursion such as
 * `a ::= b a` if `b` can be empty only through other rules. A grammar could therefore overflow the stack or
 * keep llama.cpp busy without end.
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
  /**
   * Maximum depth of rules and groups at the beginning of a rule: its first group, the first group in that
   * group, and so on. Native code recurses for each level.
   */
  chain: 600,
  /**
   * Maximum number of alternatives at the beginning of a rule, including nested alternatives. llama.cpp
   * matches each alternative with every token of the vocabulary.
   */
  ways: 1_000,
  /**
   * Maximum product of the number of alternatives and the depth. It bounds the elements of the stacks with which
   * llama.cpp begins a rule, and llama.cpp compares each new stack with all others.
   */
  stackElements: 20_000,
  /** Maximum number of consecutive optional parts. Each part can double the number of parses. */
  optionals: 12,
} as const

/** Parses and checks a grammar. Throws an `LlmError` `invalid_request` with the reason. */
export function checkGrammar(source: string): Rules {
  const rules = readGbnf(source)
  if (!rules.has('root')) throw invalidGrammar('it has no root rule')
  if (rules.size > checkLimits.rules) throw invalidGrammar(`it has more than ${checkLimits.rules} rules`)
  let size = 0
  for (const [name, body] of rules) {
    size += countElements(body)
    for (const used of collectRuleNames(body))
      if (!rules.has(used)) throw invalidGrammar(`${name} refers to ${used}, which is not defined`)
  }
  if (size > grammarLimits.elements) throw invalidGrammar('its repetitions make it too large')
  const nullable = findRules(rules, isNullable)
  for (const [name, body] of rules) checkRepeats(name, body, nullable)
  new FirstSetChecker(rules, nullable).check()
  return rules
}

const invalidGrammar = (what: string): LlmError =>
  invalidRequest(`The grammar cannot be used: ${what}.`, { issue: 'value' })

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

/** Rejects repetitions of nullable expressions and long runs of optional parts. */
function checkRepeats(name: string, expression: Expression, nullable: ReadonlySet<string>): void {
  if (expression.kind === 'repeat') {
    if (expression.max > 1 && isNullable(expression.of, nullable))
      throw invalidGrammar(`${name} repeats an expression that can be empty`)
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

/** Size of the first set, which contains all beginnings of an expression. */
interface FirstSetSize {
  /** Number of alternatives at the beginning. */
  readonly ways: number
  /** Depth of rules and groups nested at the beginning. */
  readonly chain: number
}

const deepen = ({ ways, chain }: FirstSetSize): FirstSetSize => ({ ways, chain: chain + 1 })

const tooDeep = (): LlmError =>
  invalidGrammar(`more than ${checkLimits.chain} groups and rules are nested at their beginning`)

const tooManyDeepWays = (name: string, { ways, chain }: FirstSetSize): LlmError =>
  invalidGrammar(
    `${name} can begin in ${ways} ways, and ${chain} groups and rules are nested at its beginning. The limit of the product is ${checkLimits.stackElements}`,
  )

/** Measures the first sets of all rules, depth first. Caches the size per rule. */
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
    if (this.#inProgress.has(name)) throw invalidGrammar(`${name} is left-recursive: it begins with itself`)
    if (this.#inProgress.size > checkLimits.chain) throw tooDeep()
    this.#inProgress.add(name)
    const size = this.#measure(this.#rules.get(name) as Expression)
    if (size.ways > checkLimits.ways)
      throw invalidGrammar(`${name} can begin in more than ${checkLimits.ways} ways`)
    if (size.chain > checkLimits.chain) throw tooDeep()
    if (size.ways * size.chain > checkLimits.stackElements) throw tooManyDeepWays(name, size)
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
      // Native code makes a separate rule of each choice and each repetition.
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
