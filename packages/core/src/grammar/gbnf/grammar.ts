/** A grammar in the making. Rules that say the same are one rule; what can never be finished is left out. */
import { invalidRequest } from '../../errors.ts'
import {
  canEnd,
  choice,
  type Expression,
  impossible,
  namesIn,
  nothing,
  prune,
  type Rules,
  renamed,
  repeat,
  rulesWhere,
  sequence,
  sizeOf,
} from './expressions.ts'
import { write } from './write-gbnf.ts'

/** llama.cpp refuses some repetitions above 2,000 and drops the upper bound of others. */
const block = 1_000

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
  readonly #made = new Map<object, Expression>()

  /** A rule that says this: a new one, or the one that says it already. */
  define(hint: string, body: Expression): Expression {
    if (body.kind === 'rule') return body
    const written = write(body)
    const known = this.#bodies.get(written)
    if (known) return known
    const { rule, become } = this.reserve(hint)
    become(body)
    this.#bodies.set(written, rule)
    if (rule.kind === 'rule') this.#defined.set(rule.name, body)
    return rule
  }

  /** What a rule says that was defined; nothing of one whose body comes later, since that may hold itself. */
  bodyOf(name: string): Expression | undefined {
    return this.#defined.get(name)
  }

  /** A rule of this name, made when it is first asked for; it may ask for itself. */
  once(name: string, body: () => Expression): Expression {
    if (!this.#rules.has(name)) {
      this.#rules.set(name, impossible)
      this.#rules.set(name, body())
    }
    return { kind: 'rule', name }
  }

  /** What is made of a thing, made once. */
  of(thing: object, make: () => Expression): Expression {
    const made = this.#made.get(thing) ?? make()
    this.#made.set(thing, made)
    return made
  }

  /** A rule whose body comes later and may refer to it. */
  reserve(hint: string): { readonly rule: Expression; become(body: Expression): void } {
    if (this.#rules.size >= grammarLimits.rules) throw tooLarge(`more than ${grammarLimits.rules} rules`)
    const name = `${hint}-${this.#rules.size}`
    this.#rules.set(name, impossible)
    return { rule: { kind: 'rule', name }, become: (body) => this.#rules.set(name, body) }
  }

  /** A grammar that is whole, under names of its own; what its `root` says. */
  include(rules: Rules): Expression {
    const places = new Map([...rules.keys()].map((name) => [name, this.reserve(name)] as const))
    const ruleOf = (name: string): Expression => places.get(name)?.rule ?? impossible
    for (const [name, body] of rules) places.get(name)?.become(renamed(body, ruleOf))
    return ruleOf('root')
  }

  /** Any number of times that is allowed, however large. `of` must take at least one character. */
  repeat(of: Expression, min: number, max: number): Expression {
    const one = this.define('item', of)
    if (max === Number.POSITIVE_INFINITY) return sequence(this.#exactly(one, min), repeat(one, 0, max))
    return min <= max ? sequence(this.#exactly(one, min), this.#upTo(one, max - min)) : impossible
  }

  #exactly(one: Expression, times: number): Expression {
    if (times === 0) return nothing
    if (times <= block) return repeat(one, times, times)
    const many = this.define('block', this.#exactly(one, block))
    return sequence(this.#exactly(many, Math.floor(times / block)), this.#exactly(one, times % block))
  }

  /** Whole blocks and a part of one; the last block of all is cut where the count ends. */
  #upTo(one: Expression, times: number): Expression {
    if (times === 0) return nothing
    if (times <= block) return repeat(one, 0, times)
    const many = this.define('block', this.#exactly(one, block))
    const blocks = Math.floor(times / block)
    return choice(
      sequence(this.#upTo(many, blocks - 1), this.#upTo(one, block - 1)),
      sequence(this.#exactly(many, blocks), this.#upTo(one, times % block)),
    )
  }

  /** Whether nothing satisfies one of these: which. */
  impossibleAmong(expressions: readonly Expression[]): number | undefined {
    const productive = rulesWhere(this.#rules, canEnd)
    const index = expressions.findIndex((expression) => !canEnd(expression, productive))
    return index === -1 ? undefined : index
  }

  /** The rules that can be finished and are needed; none where nothing satisfies `root`. */
  rules(root: Expression): Rules {
    const all = new Map(this.#rules).set('root', root)
    const productive = rulesWhere(all, canEnd)
    const needed = new Map<string, Expression>()
    const ahead = productive.has('root') ? ['root'] : []
    for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
      if (needed.has(name)) continue
      const body = prune(all.get(name) as Expression, productive)
      needed.set(name, body)
      for (const used of [...namesIn(body)].reverse()) ahead.push(used)
    }
    return needed
  }
}

/** Throws `invalid_request` where it is larger than native code takes in its stride. */
export function print(rules: Rules): string {
  const elements = [...rules.values()].reduce((sum, body) => sum + sizeOf(body), 0)
  if (elements > grammarLimits.elements) throw tooLarge(`more than ${grammarLimits.elements} elements`)
  const written = [...rules].map(([name, body]) => `${name} ::= ${write(body)}\n`).join('')
  if (written.length > grammarLimits.bytes) throw tooLarge(`more than ${grammarLimits.bytes} bytes`)
  return written
}

const tooLarge = (what: string) =>
  invalidRequest(`The grammar that this makes is too large: ${what}. Ask for something simpler.`, {
    issue: 'value',
  })
