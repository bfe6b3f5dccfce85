/** Executes templates. Modelled on `exec.go` of Go's `text/template`, with the option `missingkey=zero`. */
import { errorAt, GoTemplateError } from './error.ts'
import { functions } from './functions.ts'
import type { Node, Operand, Pipe, Tree } from './parse.ts'
import { toText } from './print.ts'
import { GoMap, GoStruct, type GoValue, isList, isTrue, typeOf } from './values.ts'

export interface ExecutionBounds {
  /** Maximum number of steps. Each node, each operand and each 64 characters of a value cost one step. */
  readonly maxSteps: number
  /** Maximum length of the output and of each value, in characters. */
  readonly maxLength: number
  readonly now: Date
}

const defaults = { maxSteps: 20_000_000, maxLength: 64 * 1024 * 1024 }

/** Runs a template. Throws `GoTemplateError`, for example if the template exceeds a bound. */
export const runTree = (tree: Tree, data: GoMap, bounds: Partial<ExecutionBounds> = {}): string =>
  new TemplateExecutor(tree, { ...defaults, now: new Date(), ...bounds }).run(data)

type LoopExit = 'break' | 'continue' | undefined

/** Maximum nesting depth of blocks, templates and parentheses. */
const maxDepth = 500

/** Characters that cost one step. */
const charactersPerStep = 64

class TemplateExecutor {
  readonly #tree: Tree
  readonly #bounds: ExecutionBounds
  readonly #output: string[] = []
  #length = 0
  #steps = 0
  #depth = 0
  /** Variables in scope. A later variable shadows earlier variables of the same name. */
  #variables: [string, GoValue][] = []

  constructor(tree: Tree, bounds: ExecutionBounds) {
    this.#tree = tree
    this.#bounds = bounds
  }

  run(data: GoValue): string {
    this.#variables = [['$', data]]
    this.#list(this.#tree.nodes, data)
    return this.#output.join('')
  }

  #list(nodes: readonly Node[], dot: GoValue): LoopExit {
    for (const node of nodes) {
      const exit = this.#node(node, dot)
      if (exit) return exit
    }
    return undefined
  }

  #node(node: Node, dot: GoValue): LoopExit {
    this.#step()
    switch (node.type) {
      case 'text':
        this.#write(node.text)
        return undefined
      case 'action': {
        const value = this.#pipe(node.pipe, dot)
        if (node.pipe.variables.length === 0) this.#write(this.#print(value, node.pipe.at))
        return undefined
      }
      case 'template':
        this.#template(node, dot)
        return undefined
      case 'break':
      case 'continue':
        return node.type
      default:
        return this.#runScoped(() => {
          const value = this.#pipe(node.pipe, dot, node.type === 'range')
          if (node.type === 'range') return this.#range(node, value, dot)
          if (isTrue(value)) return this.#list(node.list, node.type === 'with' ? value : dot)
          return this.#list(node.otherwise, dot)
        })
    }
  }

  #range(
    { pipe, list, otherwise }: Extract<Node, { pipe: Pipe; list: unknown }>,
    value: GoValue,
    dot: GoValue,
  ): LoopExit {
    let hasItems = false
    for (const [key, item] of this.#items(value, pipe)) {
      hasItems = true
      this.#step()
      const exit = this.#runScoped(() => {
        const values = pipe.variables.length === 1 ? [item] : [key, item]
        for (const [index, name] of pipe.variables.entries()) this.#set(name, values[index], pipe)
        return this.#list(list, item)
      })
      if (exit === 'break') break
    }
    return hasItems ? undefined : this.#list(otherwise, dot)
  }

  *#items(value: GoValue, { at, variables }: Pipe): Generator<readonly [GoValue, GoValue]> {
    if (value === undefined || value === null) return
    if (value instanceof GoMap) yield* value.entries
    else if (isList(value)) for (const [index, item] of value.entries()) yield [BigInt(index), item]
    else if (typeof value === 'bigint' && variables.length < 2)
      for (let index = 0n; index < value; index++) yield [index, index]
    else throw this.#error(at, `range can't iterate over ${this.#print(value, at).slice(0, 100)}`)
  }

  #template({ at, name, pipe }: Extract<Node, { type: 'template' }>, dot: GoValue): void {
    const nodes = this.#tree.definitions.get(name)
    if (!nodes) throw this.#error(at, `template ${JSON.stringify(name)} not defined`)
    const data = pipe && this.#pipe(pipe, dot)
    const outside = this.#variables
    this.#variables = [['$', data]]
    this.#descend(at, () => this.#list(nodes, data))
    this.#variables = outside
  }

  /** @param isLoop whether the variables receive the items of a `range` */
  #pipe(pipe: Pipe, dot: GoValue, isLoop = false): GoValue {
    return this.#descend(pipe.at, () => {
      let value: GoValue
      for (const [index, command] of pipe.commands.entries())
        value = this.#command(command, dot, index === 0 ? [] : [value]) ?? undefined
      if (!isLoop) for (const name of pipe.variables) this.#set(name, value, pipe)
      return value
    })
  }

  #set(name: string, value: GoValue, { at, isAssignment }: Pipe): void {
    if (isAssignment) this.#variable(name, at)[1] = value
    else this.#variables.push([name, value])
  }

  #variable(name: string, at: number): [string, GoValue] {
    const found = this.#variables.findLast(([own]) => own === name)
    if (found) return found
    throw this.#error(at, `undefined variable: ${name}`)
  }

  /** @param piped result of the previous command */
  #command([first, ...others]: readonly Operand[], dot: GoValue, piped: readonly GoValue[]): GoValue {
    const operand = first as Operand
    if (operand.type === 'function') return this.#call(operand, others, dot, piped)
    if (operand.type === 'nil') throw this.#error(operand.at, 'nil is not a command')
    if (others.length + piped.length > 0)
      throw this.#error(operand.at, `can't give argument to non-function ${this.#excerpt(operand.at)}`)
    return this.#value(operand, dot)
  }

  #value(operand: Operand, dot: GoValue): GoValue {
    this.#step()
    const { at } = operand
    switch (operand.type) {
      case 'dot':
        return dot
      case 'nil':
        return null
      case 'literal':
        return operand.value
      case 'function':
        return this.#call(operand, [], dot, [])
      case 'field':
        return this.#field(dot, operand.names, at)
      case 'variable':
        return this.#field(this.#variable(operand.name, at)[1], operand.names, at)
      case 'pipe':
        return this.#field(this.#pipe(operand.pipe, dot), operand.names, at)
    }
  }

  #field(value: GoValue, names: readonly string[], at: number): GoValue {
    let inner = value
    for (const name of names) {
      if (inner === undefined) return undefined
      if (inner === null) throw this.#error(at, `nil pointer evaluating interface {}.${name}`)
      if (inner instanceof GoMap) inner = inner.entries.get(name) ?? null
      else {
        const field = inner instanceof GoStruct ? inner.fields.get(name) : undefined
        if (!field) throw this.#error(at, `can't evaluate field ${name} in type ${typeOf(inner)}`)
        inner = field.value
      }
    }
    return inner
  }

  #call(
    { at, name }: Extract<Operand, { type: 'function' }>,
    operands: readonly Operand[],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    if (name === 'and' || name === 'or') return this.#shortCircuit(name === 'or', at, operands, dot, piped)
    const values = [...operands.map((operand) => this.#value(operand, dot)), ...piped]
    const {
      minArgs,
      maxArgs = values.length,
      call,
    } = functions.get(name) as NonNullable<ReturnType<typeof functions.get>>
    if (values.length < minArgs || values.length > maxArgs)
      throw this.#error(
        at,
        `wrong number of args for ${name}: want ${values.length < minArgs ? minArgs : maxArgs} got ${values.length}`,
      )
    for (const value of values) this.#charge(value)
    const result = this.#locateErrors(at, `error calling ${name}: `, () => call(values, this.#bounds))
    this.#charge(result)
    return result
  }

  /** Returns the first value whose truthiness equals `isTrueWanted`, or the last value. */
  #shortCircuit(
    isTrueWanted: boolean,
    at: number,
    operands: readonly Operand[],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    if (operands.length + piped.length === 0)
      throw this.#error(at, 'wrong number of args: want at least 1 got 0')
    let value: GoValue
    for (const operand of operands) {
      value = this.#value(operand, dot)
      if (isTrue(value) === isTrueWanted) return value
    }
    return piped.length > 0 ? piped[0] : value
  }

  #print(value: GoValue, at: number): string {
    if (value === undefined || value === null) return '<no value>'
    this.#charge(value)
    return this.#locateErrors(at, '', () => toText(value))
  }

  /** Adds the position in the template to errors that `compute` throws. */
  #locateErrors<T>(at: number, before: string, compute: () => T): T {
    try {
      return compute()
    } catch (cause) {
      if (cause instanceof GoTemplateError) throw this.#error(at, before + cause.message)
      if (cause instanceof RangeError) throw this.#error(at, `${before}the value is too large`)
      throw cause
    }
  }

  #write(text: string): void {
    this.#length += text.length
    if (this.#length > this.#bounds.maxLength) throw new GoTemplateError('the prompt is too long')
    this.#output.push(text)
  }

  #runScoped(run: () => LoopExit): LoopExit {
    const { length } = this.#variables
    const exit = this.#descend(0, run)
    this.#variables.length = length
    return exit
  }

  #descend<T>(at: number, run: () => T): T {
    if (++this.#depth > maxDepth) throw this.#error(at, 'exceeded maximum template depth')
    const value = run()
    this.#depth--
    return value
  }

  /** Charges steps for copying or printing a value. */
  #charge(value: GoValue): void {
    const length = typeof value === 'string' || isList(value) ? value.length : 0
    if (length > this.#bounds.maxLength) throw new GoTemplateError('a value is too long')
    this.#step(1 + length / charactersPerStep)
  }

  #step(count = 1): void {
    this.#steps += count
    if (this.#steps > this.#bounds.maxSteps) throw new GoTemplateError('the template takes too many steps')
  }

  #excerpt(at: number): string {
    return this.#tree.source.slice(at, at + 40).split(/[ }]/, 1)[0] as string
  }

  #error(at: number, what: string): GoTemplateError {
    return errorAt(this.#tree.source, at, `executing "" at <${this.#excerpt(at)}>: ${what}`)
  }
}
