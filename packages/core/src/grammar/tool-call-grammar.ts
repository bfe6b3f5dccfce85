/** Calls of tools in the form of a family of models: what stands around a name and its arguments, which are JSON. */
import { LlmError } from '../errors.ts'
import { choice, type Expression, optional, sequence, text } from './gbnf/expressions.ts'
import type { Grammar } from './gbnf/grammar.ts'
import { buildWordsRule } from './schema/automaton-rules.ts'
import { anyObject } from './schema/json.ts'
import { addSchema, unsatisfiable, withErrorField } from './schema/json-schema.ts'

/** White space in these texts may be left out, but between two words. */
export interface ToolCallFormat {
  /** What calls begin with and nothing else does. Absent: they are told from text by how they go on. */
  readonly mark?: string
  /** In front of the mark, where the answer begins with a call. */
  readonly prefix?: string
  /** Behind the mark, in front of all calls. */
  readonly open?: string
  /** In front of a name, which is in JSON where that ends with a quote; between name and arguments, in one way or several; behind them. */
  readonly call: readonly [before: string, between: string | readonly string[], after: string]
  /** Between two calls. Absent: an answer has one. */
  readonly separator?: string
  readonly close?: string
}

export interface CallableTool {
  readonly name: string
  /** JSON Schema of an object. */
  readonly parameters?: unknown
  /** Parameters that no grammar can say are refused, too; else they are any object. */
  readonly strict?: boolean
  /** What errors say of where its parameters are. @default 'parameters' */
  readonly field?: string
}

/** More calls at once are a model that cannot stop. */
const maxCalls = 32

/** What follows the mark. Throws `invalid_request`, with the field and the JSON pointer in `param`. */
export function buildCalls(
  tools: readonly CallableTool[],
  { open = '', call: [before, between, after], separator, close = '' }: ToolCallFormat,
  isParallel: boolean,
  grammar: Grammar,
): Expression {
  const isJson = before.endsWith('"')
  const bridgeRule = grammar.define('between', choice(...[between].flat().map(buildLiteral)))
  const values = tools.map((tool) => buildArguments(tool, grammar))
  const impossibleIndex = grammar.findImpossible(values)
  if (impossibleIndex !== undefined)
    withErrorField(tools[impossibleIndex]?.field ?? 'parameters', () => {
      throw unsatisfiable()
    })
  const named = tools.map(({ name }, index) => {
    const written = isJson ? JSON.stringify(name).slice(1, -1) : name
    return [written, sequence(bridgeRule, values[index] as Expression)] as const
  })
  const call = grammar.define(
    'call',
    sequence(buildLiteral(before), buildWordsRule(named, grammar), buildLiteral(after)),
  )
  const more = isParallel && separator !== undefined ? maxCalls - 1 : 0
  return sequence(
    buildLiteral(open),
    call,
    grammar.repeat(sequence(buildLiteral(separator ?? ''), call), 0, more),
    buildLiteral(close),
  )
}

/** In front of it there may be a name. */
const buildLiteral = (literal: string): Expression =>
  sequence(
    ...literal
      .split(/(\s(?!\w)|(?<!^|\w)\s)/)
      .map((part, at) => (at % 2 === 1 ? optional(text(part)) : text(part))),
  )

function buildArguments({ parameters, strict, field }: CallableTool, grammar: Grammar): Expression {
  try {
    // Arguments are an object, whatever else the schema would take.
    return withErrorField(field ?? 'parameters', () => addSchema(grammar, parameters ?? {}, 'objects'))
  } catch (error) {
    if (strict || !(error instanceof LlmError) || error.details.issue !== 'unsupported') throw error
    return anyObject(grammar)
  }
}
