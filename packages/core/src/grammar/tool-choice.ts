/**
 * Calls of tools, in nobody's dialect: `{"name": "…", "arguments": {…}}`, or a list of them where several may come at
 * once. Families of models that write calls otherwise have their own frame around `argumentsGrammar`.
 */
import { invalidRequest, LlmError } from '../errors.ts'
import { choice, type Expression, Grammar, sequence, text } from './gbnf.ts'
import { anyObject, space } from './json.ts'
import { addSchema, printFrom } from './json-schema.ts'

export interface CallableTool {
  readonly name: string
  /** JSON Schema of an object. */
  readonly parameters?: unknown
  /** Parameters that no grammar can say are refused, too; else they are any object. */
  readonly strict?: boolean
}

export interface CallChoice {
  readonly mode: 'auto' | 'none' | 'required'
  /** Only these may be called; all when absent. */
  readonly names?: readonly string[]
}

/** More calls at once are a model that cannot stop. */
const maxCalls = 32

/**
 * GBNF of what may be called; with `auto`, it holds from where a call begins. `undefined` where none may be.
 * Throws `invalid_request`: for names that are none, or there twice, and for what `schemaToGrammar` throws.
 */
export function callGrammar(
  tools: readonly CallableTool[],
  { mode, names }: CallChoice,
  parallel: boolean,
): string | undefined {
  checkNames(tools)
  if (mode === 'none') return undefined
  const missing = names?.find((name) => !tools.some((tool) => tool.name === name))
  if (missing !== undefined)
    throw invalidRequest(`There is no tool "${shorten(missing)}" among the tools.`, { issue: 'value' })
  const callable = tools.filter(({ name }) => names?.includes(name) ?? true)
  if (callable.length === 0) {
    if (mode === 'auto') return undefined
    throw invalidRequest('A tool must be called, and there is none.', { issue: 'value' })
  }
  const grammar = new Grammar()
  const call = grammar.define('call', choice(...callable.map((tool) => callOf(tool, grammar))))
  return printFrom(parallel ? listOf(call, grammar) : call, grammar)
}

/** GBNF of the arguments alone. */
export function argumentsGrammar(tool: CallableTool): string {
  const grammar = new Grammar()
  return printFrom(argumentsOf(tool, grammar), grammar)
}

const callOf = (tool: CallableTool, grammar: Grammar): Expression =>
  sequence(
    ...[text('{"name":'), space, text(`${JSON.stringify(tool.name)},`), space],
    ...[text('"arguments":'), space, argumentsOf(tool, grammar), text('}')],
  )

const listOf = (call: Expression, grammar: Grammar): Expression =>
  sequence(text('['), call, grammar.repeat(sequence(text(','), space, call), 0, maxCalls - 1), text(']'))

function argumentsOf({ parameters, strict }: CallableTool, grammar: Grammar): Expression {
  try {
    // Arguments are an object, whatever else the schema would take.
    return addSchema(grammar, parameters ?? {}, 'objects')
  } catch (error) {
    if (strict || !(error instanceof LlmError) || error.details.issue !== 'unsupported') throw error
    return anyObject(grammar)
  }
}

function checkNames(tools: readonly CallableTool[]): void {
  const names = new Set<string>()
  for (const { name } of tools) {
    if (name === '') throw invalidRequest('A tool has no name.', { issue: 'empty' })
    if (names.has(name)) throw invalidRequest(`There are two tools "${shorten(name)}".`, { issue: 'value' })
    names.add(name)
  }
}

const shorten = (name: string) => name.slice(0, 64).toWellFormed()
