/**
 * Regular expressions (ECMA-262, as with the flag `u`) as automata. Taken: characters and their escapes, `\d \w \s`
 * and their opposites, classes, `.`, groups, `|`, every quantifier, `^` and `$`. Look-around, back references, `\b`
 * and `\p{…}` are refused by name.
 */
import { type Automaton, explore, lastCharacter, TooComplex } from './automaton.ts'
import { Effort } from './conjunction.ts'
import type { Range } from './gbnf.ts'

/** What a pattern that is not taken is refused with; its message ends a sentence. */
export class PatternError extends Error {}

const maxLength = 4_000
const maxNodes = 8_000
const maxDepth = 200

/** `^` and `$` read these, which stand around each text and in none. */
const begin = -1
const end = lastCharacter + 1

/** Texts in which the pattern is found. Throws `PatternError` and `TooComplex`. */
export function search(pattern: string, effort = new Effort()): Automaton {
  const parser = new Parser(pattern)
  const net = new Net(effort)
  const [first, last] = [net.node(), net.node()]
  net.edge(first, [begin, end], first)
  net.edge(last, [begin, end], last)
  net.build(parser.parse(), first, last)
  return net.automaton(first, last)
}

/** Texts that the pattern takes from end to end; for our own patterns. */
export const whole = (pattern: string): Automaton => search(`^(?:${pattern})$`)

type Term =
  | { readonly kind: 'one'; readonly ranges: readonly Range[] }
  | { readonly kind: 'all'; readonly terms: readonly Term[] }
  | { readonly kind: 'any'; readonly terms: readonly Term[] }
  | { readonly kind: 'times'; readonly term: Term; readonly min: number; readonly max: number }

const one = (...ranges: readonly Range[]): Term => ({ kind: 'one', ranges })

const digits: readonly Range[] = [[0x30, 0x39]]
const wordCharacters: readonly Range[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]
/** ECMA-262, WhiteSpace and LineTerminator. */
const spaces: readonly Range[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const lineEnds: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]
const classes: Readonly<Record<string, readonly Range[]>> = {
  d: digits,
  w: wordCharacters,
  s: spaces,
  D: others(digits),
  W: others(wordCharacters),
  S: others(spaces),
}
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 }

function others(ranges: readonly Range[]): readonly Range[] {
  const left: Range[] = []
  let from = 0
  for (const [low, high] of [...ranges].sort(([a], [b]) => a - b)) {
    if (from < low) left.push([from, low - 1])
    from = Math.max(from, high + 1)
  }
  return from <= lastCharacter ? [...left, [from, lastCharacter]] : left
}

class Parser {
  readonly #characters: readonly string[]
  #at = 0
  #depth = 0

  constructor(pattern: string) {
    if (pattern.length > maxLength) throw new PatternError(`it is longer than ${maxLength} characters`)
    // Without `u` more escapes are in use; they mean the same here, but for this one.
    if (!isRegExp(pattern, 'u') && (!isRegExp(pattern) || pattern.includes('\\u{')))
      throw new PatternError('it is no regular expression of ECMA-262')
    this.#characters = [...pattern]
  }

  parse(): Term {
    const term = this.#alternatives()
    if (this.#at < this.#characters.length) throw this.#unexpected()
    return term
  }

  #alternatives(): Term {
    if (++this.#depth > maxDepth) throw new PatternError(`its groups are more than ${maxDepth} deep`)
    const terms = [this.#sequence()]
    while (this.#take('|')) terms.push(this.#sequence())
    this.#depth--
    return { kind: 'any', terms }
  }

  #sequence(): Term {
    const terms: Term[] = []
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek())
      terms.push(this.#quantified())
    return { kind: 'all', terms }
  }

  #quantified(): Term {
    const term = this.#atom()
    const counts = this.#counts()
    if (!counts) return term
    this.#take('?')
    const [min, max] = counts
    return { kind: 'times', term, min, max }
  }

  #counts(): Range | undefined {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY]
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY]
    if (this.#take('?')) return [0, 1]
    if (this.#peek() !== '{') return undefined
    const ahead = this.#characters.slice(this.#at, this.#at + 24).join('')
    const [written, min, comma, max] = /^\{(\d+)(,?)(\d*)\}/.exec(ahead) ?? []
    if (written === undefined) return undefined
    this.#at += written.length
    return [Number(min), max ? Number(max) : comma ? Number.POSITIVE_INFINITY : Number(min)]
  }

  #atom(): Term {
    const character = this.#next()
    if (character === '^') return one([begin, begin])
    if (character === '$') return one([end, end])
    if (character === '.') return one(...others(lineEnds))
    if (character === '(') return this.#group()
    if (character === '[') return this.#class()
    if (character === '\\') return one(...this.#escape())
    const code = codeOf(character)
    return one([code, code])
  }

  #group(): Term {
    if (this.#take('?')) {
      if (this.#peek() === '<' && !/[=!]/.test(this.#peek(1) ?? '')) this.#name()
      else if (!this.#take(':')) throw new PatternError('it looks ahead or behind, or sets flags')
    }
    const term = this.#alternatives()
    if (!this.#take(')')) throw this.#unexpected()
    return term
  }

  #name(): void {
    while (this.#peek() !== '>') this.#next()
    this.#next()
  }

  #class(): Term {
    const negated = this.#take('^')
    const ranges: Range[] = []
    while (!this.#take(']')) {
      const from = this.#member()
      if (this.#peek() !== '-' || this.#peek(1) === ']') {
        ranges.push(...from)
        continue
      }
      this.#next()
      const to = this.#member()
      // `[\w-.]`: no range, but three members.
      if (isOne(from) && isOne(to)) ranges.push([from[0][0], to[0][0]])
      else ranges.push(...from, [0x2d, 0x2d], ...to)
    }
    return one(...(negated ? others(ranges) : ranges))
  }

  #member(): readonly Range[] {
    const character = this.#next()
    if (character === '\\') return this.#escape(true)
    const code = codeOf(character)
    return [[code, code]]
  }

  #escape(inClass = false): readonly Range[] {
    const letter = this.#next()
    const known = classes[letter]
    if (known) return known
    const code = this.#code(letter, inClass)
    return [[code, code]]
  }

  #code(letter: string, inClass: boolean): number {
    if (letter in controls) return controls[letter] as number
    if (letter === '0') return 0
    if (letter === 'b' && inClass) return 8
    if (letter === 'c') return codeOf(this.#next()) % 32
    if (letter === 'x') return this.#hex(2)
    if (letter === 'u') return this.#unicode()
    if (/[bBkpP1-9]/.test(letter)) throw new PatternError(`it has \\${letter}`)
    return codeOf(letter)
  }

  #unicode(): number {
    if (this.#take('{')) {
      let hex = ''
      for (let next = this.#next(); next !== '}'; next = this.#next()) hex += next
      return readHex(hex)
    }
    const code = this.#hex(4)
    const isHigh = code >= 0xd800 && code < 0xdc00
    const low = this.#characters.slice(this.#at, this.#at + 6).join('')
    if (!isHigh || !/^\\u[dD][c-fC-F]/.test(low)) return code
    this.#at += 2
    return ((code - 0xd800) << 10) + (this.#hex(4) - 0xdc00) + 0x10000
  }

  #hex(digits: number): number {
    let hex = ''
    while (hex.length < digits) hex += this.#next()
    return readHex(hex)
  }

  #peek(ahead = 0): string | undefined {
    return this.#characters[this.#at + ahead]
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false
    this.#at++
    return true
  }

  #next(): string {
    const character = this.#characters[this.#at++]
    if (character === undefined) throw this.#unexpected()
    return character
  }

  #unexpected = () => new PatternError('it is not understood')
}

function readHex(hex: string): number {
  if (!/^[\da-fA-F]+$/.test(hex)) throw new PatternError('it has an escape without its digits')
  return Number.parseInt(hex, 16)
}

function isRegExp(pattern: string, flags?: string): boolean {
  try {
    return new RegExp(pattern, flags) instanceof RegExp
  } catch {
    return false
  }
}

const isOne = (ranges: readonly Range[]): ranges is readonly [Range] =>
  ranges.length === 1 && ranges[0]?.[0] === ranges[0]?.[1]

const codeOf = (character: string) => character.codePointAt(0) as number

/** A nondeterministic automaton (Thompson's construction), and the deterministic one made of it. */
class Net {
  readonly #edges: (readonly [low: number, high: number, to: number])[][] = []
  readonly #empty: number[][] = []
  readonly #effort: Effort

  constructor(effort: Effort) {
    this.#effort = effort
  }

  node(): number {
    if (this.#edges.length >= maxNodes) throw new TooComplex('its repetitions make it too large')
    this.#empty.push([])
    return this.#edges.push([]) - 1
  }

  edge(from: number, [low, high]: Range, to: number): void {
    this.#edges[from]?.push([low, high, to])
  }

  build(term: Term, from: number, to: number): void {
    switch (term.kind) {
      case 'one':
        for (const range of term.ranges) this.edge(from, range, to)
        return
      case 'any':
        for (const option of term.terms) this.build(option, from, to)
        return
      case 'all': {
        let at = from
        for (const part of term.terms) {
          const next = this.node()
          this.build(part, at, next)
          at = next
        }
        this.#empty[at]?.push(to)
        return
      }
      case 'times':
        this.#repeat(term.term, term.min, term.max, from, to)
    }
  }

  #repeat(term: Term, min: number, max: number, from: number, to: number): void {
    const step = (at: number) => {
      const next = this.node()
      this.build(term, at, next)
      return next
    }
    let at = from
    for (let count = 0; count < min; count++) at = step(at)
    if (max === Number.POSITIVE_INFINITY) {
      const loop = this.node()
      this.#empty[at]?.push(loop)
      this.#empty[step(loop)]?.push(loop)
      at = loop
    } else
      for (let count = min; count < max; count++) {
        this.#empty[at]?.push(to)
        at = step(at)
      }
    this.#empty[at]?.push(to)
  }

  automaton(first: number, last: number): Automaton {
    // Where it is found, whatever follows is taken: one state for all that.
    const settle = (nodes: readonly number[]) => (nodes.includes(last) ? [last] : nodes)
    const started = settle(this.#after(this.#closure([first]), begin))
    return explore(started, String, (nodes) => ({
      accepting: this.#after(nodes, end).includes(last),
      edges: this.#moves(nodes).map(([low, high, next]) => [low, high, settle(next)]),
    }))
  }

  #after(nodes: readonly number[], code: number): readonly number[] {
    const next: number[] = []
    let looked = 0
    for (const node of nodes) {
      const edges = this.#edges[node] ?? []
      looked += edges.length + 1
      for (const [low, high, to] of edges) if (low <= code && code <= high) next.push(to)
    }
    this.#effort.spend(looked)
    return this.#closure(next)
  }

  /** Where each stretch of characters leads that no edge begins or ends in. */
  #moves(nodes: readonly number[]): [low: number, high: number, next: readonly number[]][] {
    const edges = nodes.flatMap((node) => this.#edges[node] ?? [])
    const cuts = new Set([0, lastCharacter + 1])
    for (const [low, high] of edges)
      for (const cut of [low, high + 1]) if (cut > 0 && cut <= lastCharacter) cuts.add(cut)
    const starts = [...cuts].sort((a, b) => a - b)
    return starts.slice(0, -1).flatMap((low, at) => {
      const next = this.#after(nodes, low)
      return next.length > 0 ? [[low, (starts[at + 1] as number) - 1, next]] : []
    })
  }

  #closure(nodes: readonly number[]): readonly number[] {
    const reached = new Set<number>()
    const ahead = [...nodes]
    for (let node = ahead.pop(); node !== undefined; node = ahead.pop()) {
      if (reached.has(node)) continue
      reached.add(node)
      ahead.push(...(this.#empty[node] ?? []))
    }
    return [...reached].sort((a, b) => a - b)
  }
}
