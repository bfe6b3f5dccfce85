/** A grammar in the making. Rules that say the same are one rule; what can never be finished is left out. */
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

/** llama.cpp refuses some repetitions above 2,000 and drops the upper bound of others. */
const blockSize = 1_000

export const grammarLimits = {
  rules: 10_000,
  /** What native code makes of it, in elements: it copies all of them with each answer. */
  elements: 200_000,
  bytes: 1024 * 1024,
} as const

export class Grammar {
  readonly #rules = new Map<string, Expression>()
  readonly #bodies = new Map<string, Expression>()
  readonly #defined = new Map<string, Expression>()
  readonly #memo = new Map<object, Expression>()

  /** A rule that says this: a new one, or the one that says it already. */
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

  /** What a rule says that was defined; nothing of one whose body comes later, since that may hold itself. */
  getBody(name: string): Expression | undefined {
    return this.#defined.get(name)
  }

  /** A rule of this name, made when it is first asked for; it may ask for itself. */
  defineOnce(name: string, body: () => Expression): Expression {
    if (!this.#rules.has(name)) {
      this.#rules.set(name, impossible)
      this.#rules.set(name, body())
    }
    return { kind: 'rule', name }
  }

  /** What is made of a thing, made once. */
  memoize(key: object, build: () => Expression): Expression {
    const expression = this.#memo.get(key) ?? build()
    this.#memo.set(key, expression)
    return expression
  }

  /** A rule whose body comes later and may refer to it. */
  reserve(hint: string): { readonly rule: Expression; setBody(body: Expression): void } {
    if (this.#rules.size >= grammarLimits.rules) throw tooLarge(`more than ${grammarLimits.rules} rules`)
    const name = `${hint}-${this.#rules.size}`
    this.#rules.set(name, impossible)
    return { rule: { kind: 'rule', name }, setBody: (body) => this.#rules.set(name, body) }
  }

  /** A grammar that is whole, under names of its own; what its `root` says. */
  include(rules: Rules): Expression {
    const reserved = new Map([...rules.keys()].map((name) => [name, this.reserve(name)] as const))
    const ruleOf = (name: string): Expression => reserved.get(name)?.rule ?? impossible
    for (const [name, body] of rules) reserved.get(name)?.setBody(renameRules(body, ruleOf))
    return ruleOf('root')
  }

  /** Any number of times that is allowed, however large. `of` must take at least one character. */
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

  /** Whole blocks and a part of one; the last block of all is cut where the count ends. */
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

  /** Whether nothing satisfies one of these: which. */
  findImpossible(expressions: readonly Expression[]): number | undefined {
    const productive = findRules(this.#rules, isProductive)
    const index = expressions.findIndex((expression) => !isProductive(expression, productive))
    return index === -1 ? undefined : index
  }

  /** The rules that can be finished and are needed; none where nothing satisfies `root`. */
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

/** Throws `invalid_request` where it is larger than native code takes in its stride. */
export function printRules(rules: Rules): string {
  const elements = [...rules.values()].reduce((sum, body) => sum + countElements(body), 0)
  if (elements > grammarLimits.elements) throw tooLarge(`more than ${grammarLimits.elements} elements`)
  const written = [...rules].map(([name, body]) => `${name} ::= ${writeExpression(body)}\n`).join('')
  if (written.length > grammarLimits.bytes) throw tooLarge(`more than ${grammarLimits.bytes} bytes`)
  return written
}

const tooLarge = (what: string) =>
  invalidRequest(`The grammar that this makes is too large: ${what}. Ask for something simpler.`, {
    issue: 'value',
  })
