/**
 * Whether native code can work with a grammar that a user wrote. llama.cpp goes through the beginnings of rules
 * by calling itself, sees left recursion only where a rule is plainly empty, and tries all ways that a text can be
 * taken in one after the other: each can take for ever, or the process with it.
 */
import { invalidRequest, type LlmError } from '../../errors.ts'
import { type Expression, isNothing, namesIn, type Rules, rulesWhere, sizeOf } from './expressions.ts'
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
  if (!rules.has('root')) throw wrong('it has no rule root')
  if (rules.size > checkLimits.rules) throw wrong(`it has more than ${checkLimits.rules} rules`)
  let size = 0
  for (const [name, body] of rules) {
    size += sizeOf(body)
    for (const used of namesIn(body))
      if (!rules.has(used)) throw wrong(`${name} asks for ${used}, which is no rule`)
  }
  if (size > grammarLimits.elements) throw wrong('its repetitions make it too large')
  const empty = rulesWhere(rules, isEmpty)
  for (const [name, body] of rules) checkRepeats(name, body, empty)
  new Beginnings(rules, empty).check()
  return rules
}

const wrong = (what: string): LlmError =>
  invalidRequest(`The grammar cannot be used: ${what}.`, { issue: 'value' })

/** Whether it takes the empty text. */
function isEmpty(expression: Expression, empty: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case 'text':
      return expression.text === ''
    case 'characters':
      return false
    case 'rule':
      return empty.has(expression.name)
    case 'sequence':
      return expression.parts.every((part) => isEmpty(part, empty))
    case 'choice':
      return expression.options.some((option) => isEmpty(option, empty))
    case 'repeat':
      return expression.min === 0 || isEmpty(expression.of, empty)
  }
}

/** Of nothing, as often as one likes; and runs of parts that may each be there or not. */
function checkRepeats(name: string, expression: Expression, empty: ReadonlySet<string>): void {
  if (expression.kind === 'repeat') {
    if (expression.max > 1 && isEmpty(expression.of, empty)) throw wrong(`${name} repeats what can be empty`)
    checkRepeats(name, expression.of, empty)
  }
  if (expression.kind === 'choice') for (const option of expression.options) checkRepeats(name, option, empty)
  if (expression.kind === 'sequence') {
    let run = 0
    for (const part of expression.parts) {
      checkRepeats(name, part, empty)
      run = isEmpty(part, empty) && !isNothing(part) ? run + 1 : 0
      if (run > checkLimits.optionals)
        throw wrong(`${name} has more than ${checkLimits.optionals} optional parts in a row; use {0,n}`)
    }
  }
}

/** How a rule, or a part of one, can begin. */
interface Beginning {
  /** In how many ways. */
  readonly ways: number
  /** How many rules and groups begin with each other there. */
  readonly chain: number
}

const inside = ({ ways, chain }: Beginning): Beginning => ({ ways, chain: chain + 1 })

const tooDeep = (): LlmError => wrong(`more than ${checkLimits.chain} groups and rules begin with each other`)

/** What rules can begin with: depth first, each rule once, the sums kept. */
class Beginnings {
  readonly #rules: Rules
  readonly #empty: ReadonlySet<string>
  readonly #known = new Map<string, Beginning>()
  readonly #open = new Set<string>()

  constructor(rules: Rules, empty: ReadonlySet<string>) {
    this.#rules = rules
    this.#empty = empty
  }

  check(): void {
    for (const name of this.#rules.keys()) this.#look(name)
  }

  #look(name: string): Beginning {
    const known = this.#known.get(name)
    if (known) return known
    if (this.#open.has(name)) throw wrong(`${name} begins with itself`)
    if (this.#open.size > checkLimits.chain) throw tooDeep()
    this.#open.add(name)
    const beginning = this.#of(this.#rules.get(name) as Expression)
    if (beginning.ways > checkLimits.ways)
      throw wrong(`${name} can begin in more than ${checkLimits.ways} ways`)
    if (beginning.chain > checkLimits.chain) throw tooDeep()
    this.#open.delete(name)
    this.#known.set(name, beginning)
    return beginning
  }

  #of(expression: Expression): Beginning {
    switch (expression.kind) {
      case 'text':
      case 'characters':
        return { ways: 1, chain: 0 }
      case 'rule':
        return this.#look(expression.name)
      // A rule of its own each, in native code.
      case 'choice':
        return inside(this.#any(expression.options))
      case 'repeat':
        return inside(this.#any(expression.max > 0 ? [expression.of] : []))
      case 'sequence': {
        const last = expression.parts.findIndex((part) => !isEmpty(part, this.#empty))
        return this.#any(last === -1 ? expression.parts : expression.parts.slice(0, last + 1))
      }
    }
  }

  #any(expressions: readonly Expression[]): Beginning {
    const all = expressions.map((expression) => this.#of(expression))
    return {
      ways: all.reduce((sum, { ways }) => sum + ways, 0),
      chain: all.reduce((most, { chain }) => Math.max(most, chain), 0),
    }
  }
}
