/** Builds grammars. Equal rules are shared. Rules that match no text are removed. */
import { invalidRequest } from '../../errors.ts'
import { drain } from '../../util/drain.ts'
import {
  choice,
  collectRuleNames,
  countElements,
  type Expression,
  empty,
  findRules,
  impossible,
  isProductive,
  prune,
  type Rules,
  renameRules,
  repeat,
  sequence,
} from './expressions.ts'
import { writeExpression } from './write-gbnf.ts'

/**
 * Maximum count of one GBNF repetition. Above 2,000, llama.cpp rejects some counts and drops the upper bound
 * of others.
 */
const blockSize = 1_000

export const grammarLimits = {
  rules: 10_000,
  /** Maximum number of grammar elements in llama.cpp, which parses all of them for each request. */
  elements: 200_000,
  bytes: 1024 * 1024,
} as const

export class Grammar {
  readonly #rules = new Map<string, Expression>()
  readonly #bodies = new Map<string, Expression>()
  readonly #defined = new Map<string, Expression>()
  readonly #memo = new Map<object, Expression>()

  /** Returns a rule with this body. Reuses an existing rule with an equal body. */
  define(hint: string, body: Expression): Expression {
    if (body.kind === 'rule') return body
    const written = writeExpression(body)
    const known = this.#bodies.get(written)
    if (known) return known
    const { rule, setBody } = this.reserve(hint)
    setBody(body)
    this.#bodies.set(written, rule)
    if (rule.kind === 'rule') this.#defined.set(rule.name, body)
    return rule
  }

  /**
   * Returns the body of a rule that `define` created. Returns `undefined` for a rule that can be recursive.
   */
  getBody(name: string): Expression | undefined {
    return this.#defined.get(name)
  }

  /** Defines a rule of this name on first use. The rule can be recursive. */
  defineOnce(name: string, body: () => Expression): Expression {
    if (!this.#rules.has(name)) {
      this.#rules.set(name, impossible)
      this.#rules.set(name, body())
    }
    return { kind: 'rule', name }
  }

  memoize(key: object, build: () => Expression): Expression {
    const expression = this.#memo.get(key) ?? build()
    this.#memo.set(key, expression)
    return expression
  }

  /** Reserves a rule. `setBody` sets its body later. The body can refer to the rule. */
  reserve(hint: string): { readonly rule: Expression; setBody(body: Expression): void } {
    if (this.#rules.size >= grammarLimits.rules) throw tooLarge(`more than ${grammarLimits.rules} rules`)
    const name = `${hint}-${this.#rules.size}`
    this.#rules.set(name, impossible)
    return { rule: { kind: 'rule', name }, setBody: (body) => this.#rules.set(name, body) }
  }

  /** Includes a complete grammar under new rule names and returns its `root`. */
  include(rules: Rules): Expression {
    const reserved = new Map([...rules.keys()].map((name) => [name, this.reserve(name)] as const))
    const ruleOf = (name: string): Expression => reserved.get(name)?.rule ?? impossible
    for (const [name, body] of rules) reserved.get(name)?.setBody(renameRules(body, ruleOf))
    return ruleOf('root')
  }

  /** Repeats an expression, even above the limit of llama.cpp. `of` must not match the empty text. */
  repeat(of: Expression, min: number, max: number): Expression {
    const item = this.define('item', of)
    if (max === Number.POSITIVE_INFINITY)
      return sequence(this.#repeatExactly(item, min), repeat(item, 0, max))
    return min <= max
      ? sequence(this.#repeatExactly(item, min), this.#repeatUpTo(item, max - min))
      : impossible
  }

  #repeatExactly(item: Expression, times: number): Expression {
    if (times === 0) return empty
    if (times <= blockSize) return repeat(item, times, times)
    const fullBlock = this.define('block', this.#repeatExactly(item, blockSize))
    return sequence(
      this.#repeatExactly(fullBlock, Math.floor(times / blockSize)),
      this.#repeatExactly(item, times % blockSize),
    )
  }

  /**
   * Repeats full blocks, then less than one block. After the maximum number of full blocks, only the rest of
   * `times` can follow.
   */
  #repeatUpTo(item: Expression, times: number): Expression {
    if (times === 0) return empty
    if (times <= blockSize) return repeat(item, 0, times)
    const fullBlock = this.define('block', this.#repeatExactly(item, blockSize))
    const blocks = Math.floor(times / blockSize)
    return choice(
      sequence(this.#repeatUpTo(fullBlock, blocks - 1), this.#repeatUpTo(item, blockSize - 1)),
      sequence(this.#repeatExactly(fullBlock, blocks), this.#repeatUpTo(item, times % blockSize)),
    )
  }

  /** Returns the index of the first expression that matches no text. */
  findImpossible(expressions: readonly Expression[]): number | undefined {
    const productive = findRules(this.#rules, isProductive)
    const index = expressions.findIndex((expression) => !isProductive(expression, productive))
    return index === -1 ? undefined : index
  }

  /** Returns the productive rules that `root` can reach. Returns no rules if `root` matches no text. */
  collectRules(root: Expression): Rules {
    const all = new Map(this.#rules).set('root', root)
    const productive = findRules(all, isProductive)
    const needed = new Map<string, Expression>()
    const pending = productive.has('root') ? ['root'] : []
    for (const name of drain(pending)) {
      if (needed.has(name)) continue
      const body = prune(all.get(name) as Expression, productive)
      needed.set(name, body)
      for (const used of [...collectRuleNames(body)].reverse()) pending.push(used)
    }
    return needed
  }
}

/** Writes rules as GBNF. Throws an `LlmError` `invalid_request` if the result exceeds `grammarLimits`. */
export function printRules(rules: Rules): string {
  const elements = [...rules.values()].reduce((sum, body) => sum + countElements(body), 0)
  if (elements > grammarLimits.elements) throw tooLarge(`more than ${grammarLimits.elements} elements`)
  const written = [...rules].map(([name, body]) => `${name} ::= ${writeExpression(body)}\n`).join('')
  if (written.length > grammarLimits.bytes) throw tooLarge(`more than ${grammarLimits.bytes} bytes`)
  return written
}

const tooLarge = (what: string) =>
  invalidRequest(`The resulting grammar is too large: ${what}. Simplify the schema or the tools.`, {
    issue: 'value',
  })
