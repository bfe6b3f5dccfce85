/** Parses templates. Modelled on `parse.go` of Go's `text/template/parse`. */
import { errorAt, type GoTemplateError } from './error.ts'
import { functionNames } from './functions.ts'
import { lex, type Token } from './lex.ts'
import { parseCharacter, parseNumber, parseString } from './literals.ts'
import type { GoValue } from './values.ts'

export interface Tree {
  readonly source: string
  readonly nodes: readonly Node[]
  /** Templates of `define` and `block`, by name. */
  readonly definitions: ReadonlyMap<string, readonly Node[]>
}

export type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'action'; readonly pipe: Pipe }
  | {
      readonly type: 'if' | 'with' | 'range'
      readonly pipe: Pipe
      readonly list: readonly Node[]
      readonly otherwise: readonly Node[]
    }
  | { readonly type: 'template'; readonly at: number; readonly name: string; readonly pipe?: Pipe }
  | { readonly type: 'break' | 'continue' }

export interface Pipe {
  readonly at: number
  readonly variables: readonly string[]
  /** Whether the pipe assigns to existing variables (`=`) instead of declaring variables (`:=`). */
  readonly isAssignment: boolean
  /** Each command has at least one operand. Its last argument is the result of the previous command. */
  readonly commands: readonly (readonly Operand[])[]
}

export type Operand = { readonly at: number } & (
  | { readonly type: 'dot' | 'nil' }
  | { readonly type: 'field'; readonly names: readonly string[] }
  | { readonly type: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly type: 'pipe'; readonly pipe: Pipe; readonly names: readonly string[] }
  | { readonly type: 'function'; readonly name: string }
  | { readonly type: 'literal'; readonly value: GoValue }
)

/** Maximum nesting depth of blocks and parentheses. */
const maxDepth = 100

/** Throws `GoTemplateError`. */
export const parseTree = (source: string): Tree => new TreeParser(source).parse()

interface ParsedList {
  readonly nodes: readonly Node[]
  /** End of the list: `{{ end`, `{{ else` or the end of the source. */
  readonly ending: 'end' | 'else' | 'source'
}

class TreeParser {
  readonly #source: string
  readonly #tokens: readonly Token[]
  readonly #definitions = new Map<string, readonly Node[]>()
  #at = 0
  #depth = 0
  #loopDepth = 0
  /** Variables in scope. */
  #variables = ['$']

  constructor(source: string) {
    this.#source = source
    this.#tokens = lex(source)
  }

  parse(): Tree {
    const { nodes, ending } = this.#list(true)
    if (ending !== 'source') throw this.#error(`unexpected {{${ending}}}`)
    return { source: this.#source, nodes, definitions: this.#definitions }
  }

  #list(isTop = false): ParsedList {
    const nodes: Node[] = []
    for (;;) {
      const token = this.#next()
      if (token.type === 'end') return { nodes, ending: 'source' }
      if (token.type === 'text') nodes.push(token)
      else if (this.#tryTakeWord('end')) {
        this.#close('end')
        return { nodes, ending: 'end' }
      } else if (this.#tryTakeWord('else')) return { nodes, ending: 'else' }
      else if (this.#tryTakeWord('define')) this.#define(isTop)
      else nodes.push(this.#action())
    }
  }

  #action(): Node {
    for (const type of ['if', 'with', 'range'] as const)
      if (this.#tryTakeWord(type)) return this.#control(type)
    for (const type of ['break', 'continue'] as const)
      if (this.#tryTakeWord(type)) {
        if (this.#loopDepth === 0) throw this.#error(`{{${type}}} outside {{range}}`)
        this.#close(type)
        return { type }
      }
    if (this.#tryTakeWord('template') || this.#isWord('block'))
      return this.#template(this.#tryTakeWord('block'))
    const pipe = this.#pipe('command')
    this.#close('command')
    return { type: 'action', pipe }
  }

  #control(type: 'if' | 'with' | 'range'): Node {
    return this.#descend(() => {
      const { length } = this.#variables
      const pipe = this.#pipe(type)
      this.#close(type)
      if (type === 'range') this.#loopDepth++
      const { nodes: list, ending } = this.#list()
      if (type === 'range') this.#loopDepth--
      const otherwise = this.#otherwise(type, ending)
      this.#variables.length = length
      return { type, pipe, list, otherwise }
    })
  }

  #otherwise(type: 'if' | 'with' | 'range', ending: ParsedList['ending']): readonly Node[] {
    if (ending === 'source') throw this.#error('unexpected EOF')
    if (ending === 'end') return []
    // `if` and its `else if` share one `end`.
    if (type !== 'range' && this.#tryTakeWord(type)) return [this.#control(type)]
    this.#close('else')
    const { nodes, ending: last } = this.#list()
    if (last !== 'end') throw this.#error(last === 'else' ? 'expected end; found {{else}}' : 'unexpected EOF')
    return nodes
  }

  #template(isBlock: boolean): Node {
    const { at } = this.#peek()
    const name = this.#name(isBlock ? 'block clause' : 'template clause')
    const pipe = this.#peek().type === 'close' ? undefined : this.#pipe('template clause')
    this.#close('template clause')
    if (isBlock) this.#body(name, 'block clause')
    return { type: 'template', at, name, ...(pipe && { pipe }) }
  }

  #define(isTop: boolean): void {
    if (!isTop) throw this.#error('unexpected {{define}}')
    const name = this.#name('define clause')
    this.#close('define clause')
    this.#body(name, 'define clause')
  }

  #body(name: string, context: string): void {
    const outside = this.#variables
    const loops = this.#loopDepth
    this.#variables = ['$']
    this.#loopDepth = 0
    const { nodes, ending } = this.#descend(() => this.#list())
    this.#variables = outside
    this.#loopDepth = loops
    if (ending !== 'end')
      throw this.#error(`unexpected ${ending === 'else' ? '{{else}}' : 'EOF'} in ${context}`)
    this.#definitions.set(name, nodes)
  }

  #name(context: string): string {
    const token = this.#next()
    const name = token.type === 'string' ? parseString(token.text) : undefined
    if (name === undefined) throw this.#error(`unexpected ${describeToken(token)} in ${context}`)
    return name
  }

  #pipe(context: string): Pipe {
    return this.#descend(() => {
      const { at } = this.#peek()
      const { variables, isAssignment } = this.#declarations(context)
      const commands = [this.#command(context)]
      while (this.#tryTakeMark('|')) commands.push(this.#command(context))
      for (const [first] of commands.slice(1))
        if (first && (first.type === 'literal' || first.type === 'nil' || first.type === 'dot'))
          throw this.#error('non executable command in pipeline', first.at)
      if (!isAssignment) this.#variables.push(...variables)
      return { at, variables, isAssignment, commands }
    })
  }

  /** Parses variables before `:=` or `=`. Only `range` can have two variables. */
  #declarations(context: string): Pick<Pipe, 'variables' | 'isAssignment'> {
    const from = this.#at
    const variables: string[] = []
    for (;;) {
      const token = this.#next()
      if (token.type !== 'variable') break
      variables.push(token.text)
      const isDeclared = this.#tryTakeMark(':=')
      if (isDeclared || this.#tryTakeMark('=')) {
        for (const name of isDeclared ? [] : variables) this.#expectVariable(name, token.at)
        return { variables, isAssignment: !isDeclared }
      }
      if (context !== 'range' || variables.length > 1 || !this.#tryTakeMark(',')) break
    }
    this.#at = from
    return { variables: [], isAssignment: false }
  }

  #command(context: string): readonly Operand[] {
    const operands: Operand[] = []
    for (;;) {
      const token = this.#peek()
      if (token.type === 'close' || (token.type === 'mark' && ')|'.includes(token.text))) break
      if (operands.length > 0 && !('isSpaced' in token && token.isSpaced))
        throw this.#error(`unexpected ${describeToken(token)} in operand`)
      operands.push(this.#operand(context))
    }
    if (operands.length === 0) throw this.#error(`missing value for ${context}`)
    return operands
  }

  #operand(context: string): Operand {
    const token = this.#next()
    const { at } = token
    switch (token.type) {
      case 'field':
        return { type: 'field', at, names: [token.text.slice(1), ...this.#fields()] }
      case 'variable':
        this.#expectVariable(token.text, at)
        return { type: 'variable', at, name: token.text, names: this.#fields() }
      case 'string':
        return this.#literal(at, parseString(token.text), 'invalid syntax')
      case 'number':
        return this.#literal(at, parseNumber(token.text), `bad number syntax: ${JSON.stringify(token.text)}`)
      case 'character':
        return this.#literal(at, parseCharacter(token.text), `malformed character constant: ${token.text}`)
      case 'word':
        return this.#word(token.text, at)
      case 'mark':
        if (token.text === '.') return { type: 'dot', at }
        if (token.text === '(') {
          const pipe = this.#pipe('parenthesized pipeline')
          if (!this.#tryTakeMark(')')) throw this.#error(`unclosed left paren`)
          return { type: 'pipe', at, pipe, names: this.#fields() }
        }
    }
    throw this.#error(`unexpected ${describeToken(token)} in ${context}`, at)
  }

  #literal(at: number, value: GoValue, problem: string): Operand {
    if (value === undefined) throw this.#error(problem, at)
    return { type: 'literal', at, value }
  }

  #word(name: string, at: number): Operand {
    if (name === 'true' || name === 'false') return { type: 'literal', at, value: name === 'true' }
    if (name === 'nil') return { type: 'nil', at }
    if (!functionNames.has(name)) throw this.#error(`function ${JSON.stringify(name)} not defined`, at)
    return { type: 'function', at, name }
  }

  /** Parses fields, such as `.Name`, that follow an operand without white space. */
  #fields(): readonly string[] {
    const names: string[] = []
    for (;;) {
      const token = this.#peek()
      if (token.type !== 'field' || token.isSpaced) return names
      names.push(token.text.slice(1))
      this.#at++
    }
  }

  #expectVariable(name: string, at: number): void {
    if (!this.#variables.includes(name)) throw this.#error(`undefined variable ${JSON.stringify(name)}`, at)
  }

  #close(context: string): void {
    const token = this.#next()
    if (token.type !== 'close')
      throw this.#error(`unexpected ${describeToken(token)} in ${context}`, token.at)
  }

  #peek(): Token {
    return this.#tokens[this.#at] as Token
  }

  /** Never advances past the end token. */
  #next(): Token {
    const token = this.#peek()
    if (token.type !== 'end') this.#at++
    return token
  }

  #isWord(text: string): boolean {
    const token = this.#peek()
    return token.type === 'word' && token.text === text
  }

  #tryTakeWord(text: string): boolean {
    const isMatch = this.#isWord(text)
    if (isMatch) this.#at++
    return isMatch
  }

  #tryTakeMark(text: string): boolean {
    const token = this.#peek()
    const isMatch = token.type === 'mark' && token.text === text
    if (isMatch) this.#at++
    return isMatch
  }

  #descend<T>(parse: () => T): T {
    if (++this.#depth > maxDepth) throw this.#error('exceeded maximum parse depth')
    const parsed = parse()
    this.#depth--
    return parsed
  }

  #error(what: string, at = this.#peek().at): GoTemplateError {
    return errorAt(this.#source, at, what)
  }
}

const describeToken = (token: Token): string =>
  token.type === 'end'
    ? 'EOF'
    : 'text' in token
      ? JSON.stringify(token.text.slice(0, 40))
      : `{{${token.type}}}`
