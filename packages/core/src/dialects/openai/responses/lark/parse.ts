/** Parses a Lark grammar. Reference: Lark documentation, "Grammar Reference". */
import { LarkError, type LarkToken, readTokens } from './tokens.ts'

export type LarkExpression =
  | { readonly type: 'choice' | 'sequence'; readonly items: readonly LarkExpression[] }
  | { readonly type: 'repeat'; readonly item: LarkExpression; readonly quantifier: string }
  | { readonly type: 'name' | 'string' | 'regexp'; readonly text: string; readonly line: number }
  | { readonly type: 'range'; readonly from: string; readonly to: string }

/** Rules and terminals by name. An imported terminal is the name of a common terminal with the prefix `common.`. */
export type LarkRules = ReadonlyMap<string, LarkExpression>

/** Nesting of groups. */
const maxDepth = 100

export const parseLark = (source: string): LarkRules => new Parser(source).parse()

class Parser {
  readonly #tokens: readonly LarkToken[]
  readonly #rules = new Map<string, LarkExpression>()
  #at = 0
  #depth = 0

  constructor(source: string) {
    this.#tokens = [...readTokens(source)]
  }

  parse(): LarkRules {
    while (this.#at < this.#tokens.length) {
      if (this.#take('newline')) continue
      if (this.#peek()?.kind === 'directive') this.#parseDirective()
      else this.#parseRule()
    }
    return this.#rules
  }

  #parseDirective(): void {
    const { text, line } = this.#next()
    if (text !== '%import') throw new LarkError(`line ${line} has '${text}', which is not supported`)
    const [module, dot] = [this.#next(), this.#next()]
    if (module.text !== 'common')
      throw new LarkError(`line ${line} imports from another module than 'common'`)
    const names: string[] = []
    if (dot.text === '(') {
      do names.push(this.#expectName())
      while (this.#take('operator', ','))
      this.#expect(')')
    } else names.push(this.#expectName())
    const alias = this.#take('operator', '->') ? this.#expectName() : undefined
    for (const name of names) this.#rules.set(alias ?? name, { type: 'name', text: `common.${name}`, line })
    this.#endLine()
  }

  #parseRule(): void {
    const line = this.#peek()?.line
    const name = this.#expectName()
    // A priority changes which of several meanings of a text is chosen, and not which texts match.
    if (this.#take('operator', '.')) this.#next()
    if (this.#peek()?.text === '{') throw new LarkError(`line ${line} has a template, which is not supported`)
    this.#expect(':')
    if (this.#rules.has(name)) throw new LarkError(`line ${line} defines '${name}' again`)
    this.#rules.set(name, this.#parseChoice())
    this.#endLine()
  }

  #parseChoice(): LarkExpression {
    if (++this.#depth > maxDepth) throw new LarkError(`it is nested more than ${maxDepth} levels deep`)
    const items = [this.#parseSequence()]
    while (this.#takeBar()) items.push(this.#parseSequence())
    this.#depth--
    return items.length === 1 ? (items[0] as LarkExpression) : { type: 'choice', items }
  }

  #parseSequence(): LarkExpression {
    const items: LarkExpression[] = []
    for (;;) {
      const item = this.#parseItem()
      if (!item) break
      items.push(item)
    }
    // An alias names a part of the syntax tree, and does not change which texts match.
    if (this.#take('operator', '->')) this.#expectName()
    return { type: 'sequence', items }
  }

  #parseItem(): LarkExpression | undefined {
    const atom = this.#parseAtom()
    if (!atom) return undefined
    const { text } = this.#peek() ?? {}
    if (text === '?' || text === '*' || text === '+') {
      this.#next()
      return { type: 'repeat', item: atom, quantifier: text }
    }
    if (!this.#take('operator', '~')) return atom
    const least = this.#expectNumber()
    const most = this.#take('operator', '..') ? this.#expectNumber() : least
    return { type: 'repeat', item: atom, quantifier: `{${least},${most}}` }
  }

  #parseAtom(): LarkExpression | undefined {
    const token = this.#peek()
    if (!token) return undefined
    const { kind, text, line } = token
    if (text === '(' || text === '[') {
      this.#next()
      const item = this.#parseChoice()
      this.#expect(text === '(' ? ')' : ']')
      return text === '(' ? item : { type: 'repeat', item, quantifier: '?' }
    }
    if (kind !== 'name' && kind !== 'string' && kind !== 'regexp') return undefined
    this.#next()
    if (kind === 'string' && this.#take('operator', '..'))
      return { type: 'range', from: text, to: this.#next().text }
    if (kind === 'name' && this.#peek()?.text === '{')
      throw new LarkError(`line ${line} has a template, which is not supported`)
    return { type: kind, text, line }
  }

  /** Takes a `|`, which may be at the beginning of the next line. */
  #takeBar(): boolean {
    const start = this.#at
    while (this.#take('newline'));
    if (this.#take('operator', '|')) return true
    this.#at = start
    return false
  }

  #peek(): LarkToken | undefined {
    return this.#tokens[this.#at]
  }

  #next(): LarkToken {
    const token = this.#tokens[this.#at++]
    if (!token) throw new LarkError('it ends in the middle of a rule')
    return token
  }

  #take(kind: LarkToken['kind'], text?: string): boolean {
    const token = this.#peek()
    const isNext = token?.kind === kind && (text === undefined || token.text === text)
    if (isNext) this.#at++
    return isNext
  }

  #expect(text: string): void {
    const token = this.#next()
    if (token.text !== text) throw new LarkError(`line ${token.line} has no '${text}' where one is expected`)
  }

  #expectName(): string {
    const { kind, text, line } = this.#next()
    if (kind !== 'name') throw new LarkError(`line ${line} has no name where one is expected`)
    return text.replace(/^[!?]+/, '')
  }

  #expectNumber(): string {
    const { kind, text, line } = this.#next()
    if (kind !== 'number') throw new LarkError(`line ${line} has no number where one is expected`)
    return text
  }

  #endLine(): void {
    if (this.#take('newline')) return
    throw new LarkError(`line ${this.#peek()?.line} has something unexpected behind a rule`)
  }
}
