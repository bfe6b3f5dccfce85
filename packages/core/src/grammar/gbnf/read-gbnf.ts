/**
 * Parses GBNF like llama.cpp (`src/llama-grammar.cpp`). Rejects all text that llama.cpp rejects or ignores.
 */
import { invalidRequest, type LlmError } from '../../errors.ts'
import { anyCharacter, complementRanges, lastCharacter, type Range } from '../automata/ranges.ts'
import { characters, type Expression, type Rules, repeat, sequence, text } from './expressions.ts'

export const userGrammarLimits = {
  /** Maximum length of the source, in characters. */
  length: 256 * 1024,
  /** Maximum levels of nested groups. The native parser recurses once per level. */
  depth: 500,
  /** Maximum count of a repetition, as in llama.cpp, which silently drops some higher upper bounds. */
  repetitions: 2_000,
  /** Maximum consecutive repetition operators, as in `"a"+?`. Each operator adds a rule around the others. */
  signs: 4,
} as const

/** Throws an `LlmError` `invalid_request` with the line number in the message. */
export const readGbnf = (source: string): Rules => new GbnfParser(source).parseRules()

class GbnfParser {
  readonly #source: string
  readonly #rules = new Map<string, Expression>()
  #at = 0
  #depth = 0

  constructor(source: string) {
    if (source.length > userGrammarLimits.length)
      throw invalidRequest(`The grammar is longer than ${userGrammarLimits.length} characters.`, {
        issue: 'value',
      })
    if (!source.isWellFormed() || source.includes('\0'))
      throw invalidRequest('The grammar contains unpaired surrogates or null characters.', { issue: 'value' })
    this.#source = source
  }

  parseRules(): Rules {
    this.#skip(true)
    while (this.#at < this.#source.length) {
      const name = this.#name()
      this.#skip(false)
      if (!this.#take('::=')) throw this.#error('expected ::=')
      this.#skip(true)
      if (this.#rules.has(name)) throw this.#error(`the rule ${name} is defined twice`)
      this.#rules.set(name, this.#choice(false))
      if (this.#at < this.#source.length && !this.#take('\r') && !this.#take('\n'))
        throw this.#error('expected a new line')
      this.#skip(true)
    }
    return this.#rules
  }

  /** @param isNested whether this is the inside of a group, where a new line is white space */
  #choice(isNested: boolean): Expression {
    const options = [this.#sequence(isNested)]
    while (this.#take('|')) {
      this.#skip(true)
      options.push(this.#sequence(isNested))
    }
    return { kind: 'choice', options }
  }

  #sequence(isNested: boolean): Expression {
    const parts: Expression[] = []
    for (let item = this.#item(); item; item = this.#item()) {
      this.#skip(isNested)
      let signs = 0
      for (let times = this.#times(isNested); times; times = this.#times(isNested)) {
        if (++signs > userGrammarLimits.signs)
          throw this.#error(`more than ${userGrammarLimits.signs} consecutive repetition operators`)
        item = repeat(item, ...times)
        this.#skip(isNested)
      }
      parts.push(item)
    }
    return { kind: 'sequence', parts }
  }

  #item(): Expression | undefined {
    const next = this.#source[this.#at]
    if (next === undefined) return undefined
    if (this.#take('"')) return this.#text()
    if (this.#take('[')) return this.#class()
    if (this.#take('.')) return characters(anyCharacter)
    if (this.#take('(')) return this.#group()
    if (next === '<' || next === '!') throw this.#error('tokens are not supported')
    return isNamePart(next) ? { kind: 'rule', name: this.#name() } : undefined
  }

  #text(): Expression {
    const codes: number[] = []
    while (!this.#take('"')) codes.push(this.#character())
    return codes.every((code) => code < 0xd800 || (code > 0xdfff && code <= lastCharacter))
      ? text(codes.map((code) => String.fromCodePoint(code)).join(''))
      : sequence(...codes.map((code) => characters([code, code])))
  }

  #class(): Expression {
    const isNegated = this.#take('^')
    const ranges: Range[] = []
    while (!this.#take(']')) {
      const low = this.#character()
      const isRange = this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']'
      if (isRange) this.#at++
      const high = isRange ? this.#character() : low
      if (high < low) throw this.#error('a character range is reversed')
      ranges.push([low, high])
    }
    if (ranges.length === 0) throw this.#error('a character class is empty')
    return { kind: 'characters', ranges: isNegated ? complementRanges(ranges) : ranges }
  }

  #group(): Expression {
    if (++this.#depth > userGrammarLimits.depth)
      throw this.#error(`groups are nested more than ${userGrammarLimits.depth} levels deep`)
    this.#skip(true)
    const inside = this.#choice(true)
    if (!this.#take(')')) throw this.#error('expected )')
    this.#depth--
    return inside
  }

  #times(isNested: boolean): readonly [min: number, max: number] | undefined {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY]
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY]
    if (this.#take('?')) return [0, 1]
    if (!this.#take('{')) return undefined
    this.#skip(isNested)
    const min = this.#count(isNested)
    if (min === undefined) throw this.#error('expected a number')
    const isOpen = this.#take(',')
    if (isOpen) this.#skip(isNested)
    const max = isOpen ? (this.#count(isNested) ?? Number.POSITIVE_INFINITY) : min
    if (!this.#take('}')) throw this.#error('expected }')
    if (min > max) throw this.#error('the minimum of a repetition is above its maximum')
    return [min, max]
  }

  #count(isNested: boolean): number | undefined {
    const [digits] = /^\d*/.exec(this.#source.slice(this.#at, this.#at + 20)) ?? ['']
    if (digits === '') return undefined
    if (Number(digits) > userGrammarLimits.repetitions)
      throw this.#error(`more than ${userGrammarLimits.repetitions} repetitions`)
    this.#at += digits.length
    this.#skip(isNested)
    return Number(digits)
  }

  #character(): number {
    const code = this.#source.codePointAt(this.#at)
    if (code === undefined) throw this.#error('unexpected end')
    if (code !== 0x5c) {
      this.#at += code > 0xffff ? 2 : 1
      return code
    }
    const letter = this.#source[this.#at + 1] ?? ''
    this.#at += 2
    const digits = hexDigits[letter]
    if (digits === undefined) {
      const escaped = escapes[letter]
      if (escaped === undefined) throw this.#error('unknown escape')
      return escaped
    }
    const hex = this.#source.slice(this.#at, this.#at + digits)
    if (hex.length < digits || !/^[\da-fA-F]+$/.test(hex)) throw this.#error(`expected ${digits} hex digits`)
    this.#at += digits
    return Number.parseInt(hex, 16)
  }

  #name(): string {
    const start = this.#at
    while (isNamePart(this.#source[this.#at] ?? '')) this.#at++
    if (start === this.#at) throw this.#error('expected a rule name')
    return this.#source.slice(start, this.#at)
  }

  #skip(includesLines: boolean): void {
    for (;;) {
      const next = this.#source[this.#at]
      if (next === '#')
        while (this.#at < this.#source.length && !/[\r\n]/.test(this.#source[this.#at] ?? '')) this.#at++
      else if (next === ' ' || next === '\t' || (includesLines && (next === '\r' || next === '\n')))
        this.#at++
      else return
    }
  }

  #take(expected: string): boolean {
    if (!this.#source.startsWith(expected, this.#at)) return false
    this.#at += expected.length
    return true
  }

  #error(what: string): LlmError {
    const line = this.#source.slice(0, this.#at).split('\n').length
    return invalidRequest(`The grammar cannot be parsed: ${what} in line ${line}.`, { issue: 'value' })
  }
}

const hexDigits: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 }
const escapes: Readonly<Record<string, number>> = {
  t: 9,
  r: 13,
  n: 10,
  '\\': 0x5c,
  '"': 0x22,
  '[': 0x5b,
  ']': 0x5d,
  '-': 0x2d,
}
const isNamePart = (character: string) => /^[A-Za-z0-9-]$/.test(character)
