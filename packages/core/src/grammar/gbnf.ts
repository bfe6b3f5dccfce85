/**
 * A grammar in the making, and how it is written for llama.cpp (GBNF: its `grammars/README.md`).
 * Rules that say the same are one rule; what can never be finished is left out.
 */
import { invalidRequest } from '../errors.ts'
import type { Range } from './ranges.ts'

export type Expression =
  | { readonly kind: 'text'; readonly text: string }
  /** One character out of these; code points. */
  | { readonly kind: 'characters'; readonly ranges: readonly Range[] }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'sequence'; readonly parts: readonly Expression[] }
  /** Of no options: what nothing can satisfy. */
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
export const nothing: Expression = sequence()
export const impossible: Expression = choice()

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
    return rule
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

/** The rules for which it holds: if for a body depending on those for which it is known to, until no more are found. */
export function rulesWhere(
  rules: Rules,
  holds: (body: Expression, known: ReadonlySet<string>) => boolean,
): ReadonlySet<string> {
  const known = new Set<string>()
  const users = new Map<string, string[]>([...rules.keys()].map((name) => [name, []]))
  for (const [name, body] of rules) for (const used of namesIn(body)) users.get(used)?.push(name)
  const ahead = [...rules.keys()]
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    if (known.has(name) || !holds(rules.get(name) as Expression, known)) continue
    known.add(name)
    for (const user of users.get(name) ?? []) ahead.push(user)
  }
  return known
}

/** Whether some text satisfies it. */
function canEnd(expression: Expression, productive: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case 'text':
      return true
    case 'characters':
      return expression.ranges.length > 0
    case 'rule':
      return productive.has(expression.name)
    case 'sequence':
      return expression.parts.every((part) => canEnd(part, productive))
    case 'choice':
      return expression.options.some((option) => canEnd(option, productive))
    case 'repeat':
      return expression.min === 0 || canEnd(expression.of, productive)
  }
}

/** Of what can end, only what can: nobody must be led into a dead end. */
function prune(expression: Expression, productive: ReadonlySet<string>): Expression {
  switch (expression.kind) {
    case 'sequence':
      return sequence(...expression.parts.map((part) => prune(part, productive)))
    case 'choice': {
      const options = expression.options.filter((option) => canEnd(option, productive))
      return choice(...options.map((option) => prune(option, productive)))
    }
    case 'repeat':
      return canEnd(expression.of, productive)
        ? { ...expression, of: prune(expression.of, productive) }
        : nothing
    default:
      return expression
  }
}

export function* namesIn(expression: Expression): Iterable<string> {
  if (expression.kind === 'rule') yield expression.name
  else if (expression.kind === 'sequence') for (const part of expression.parts) yield* namesIn(part)
  else if (expression.kind === 'choice') for (const option of expression.options) yield* namesIn(option)
  else if (expression.kind === 'repeat') yield* namesIn(expression.of)
}

function renamed(expression: Expression, ruleOf: (name: string) => Expression): Expression {
  switch (expression.kind) {
    case 'rule':
      return ruleOf(expression.name)
    case 'sequence':
      return sequence(...expression.parts.map((part) => renamed(part, ruleOf)))
    case 'choice':
      return choice(...expression.options.map((option) => renamed(option, ruleOf)))
    case 'repeat':
      return { ...expression, of: renamed(expression.of, ruleOf) }
    default:
      return expression
  }
}

/** Elements in native code, where repetitions are written out. */
export function sizeOf(expression: Expression): number {
  switch (expression.kind) {
    case 'text':
      return expression.text.length
    case 'characters':
      return 2 * expression.ranges.length
    case 'rule':
      return 1
    case 'sequence':
      return expression.parts.reduce((sum, part) => sum + sizeOf(part), 0)
    case 'choice':
      return expression.options.reduce((sum, option) => sum + sizeOf(option) + 1, 1)
    case 'repeat': {
      const rest = expression.max === Number.POSITIVE_INFINITY ? 1 : expression.max - expression.min
      return expression.min * sizeOf(expression.of) + rest * (sizeOf(expression.of) + 3)
    }
  }
}

function write(expression: Expression, inside?: 'sequence' | 'repeat'): string {
  switch (expression.kind) {
    case 'text':
      return `"${[...expression.text].map(escapeText).join('')}"`
    case 'characters':
      return `[${expression.ranges.map(writeRange).join('')}]`
    case 'rule':
      return expression.name
    case 'sequence': {
      const parts = expression.parts.filter((part) => !isNothing(part))
      if (parts.length === 0) return '""'
      if (parts.length === 1) return write(parts[0] as Expression, inside)
      const written = parts.map((part) => write(part, 'sequence')).join(' ')
      return inside === 'repeat' ? `(${written})` : written
    }
    case 'choice': {
      if (expression.options.length === 1) return write(expression.options[0] as Expression, inside)
      const written = expression.options.map((option) => write(option)).join(' | ')
      return inside ? `(${written})` : written
    }
    case 'repeat': {
      const of = write(expression.of, 'repeat')
      const { min, max } = expression
      if (min === 1 && max === 1) return of
      return `${isRepeat(expression.of) ? `(${of})` : of}${times(min, max)}`
    }
  }
}

/** Also behind sequences and choices of one. */
function isRepeat(expression: Expression): boolean {
  const parts = expression.kind === 'sequence' ? expression.parts.filter((part) => !isNothing(part)) : []
  const [only] = expression.kind === 'choice' ? expression.options : parts
  if (expression.kind === 'repeat') return true
  const isOne = expression.kind === 'choice' ? expression.options.length === 1 : parts.length === 1
  return isOne && only !== undefined && isRepeat(only)
}

/** Whether it is plainly empty. */
export const isNothing = (expression: Expression): boolean =>
  (expression.kind === 'text' && expression.text === '') ||
  (expression.kind === 'sequence' && expression.parts.every(isNothing))

function times(min: number, max: number): string {
  if (max === Number.POSITIVE_INFINITY) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`
  if (min === max) return `{${min}}`
  return min === 0 && max === 1 ? '?' : `{${min},${max}}`
}

function escapeText(character: string): string {
  if (character === '"' || character === '\\') return `\\${character}`
  const code = character.codePointAt(0) as number
  return code < 0x20 || code === 0x7f ? writeCode(code) : character
}

const writeRange = ([low, high]: Range) =>
  low === high ? writeCharacter(low) : `${writeCharacter(low)}-${writeCharacter(high)}`

const writeCharacter = (code: number) => {
  const character = String.fromCodePoint(code)
  return /[A-Za-z0-9 _.,:;/+@]/.test(character) ? character : writeCode(code)
}

function writeCode(code: number): string {
  const hex = code.toString(16)
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}
