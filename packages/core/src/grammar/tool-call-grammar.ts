/** Grammar of tool calls in the format of a model family, with JSON arguments. */
import { LlmError } from '../errors.ts'
import type { CallableTool, ToolCallFormat } from './constraint.ts'
import { choice, type Expression, optional, sequence, text } from './gbnf/expressions.ts'
import type { Grammar } from './gbnf/grammar.ts'
import { buildWordsRule } from './schema/automaton-rules.ts'
import { anyObject } from './schema/json.ts'
import { addSchema, unsatisfiable, withErrorField } from './schema/json-schema.ts'

/** Maximum number of parallel tool calls. A model that makes more calls is in a loop. */
const maxCalls = 32

/**
 * Builds the tool calls after the mark. Throws an `LlmError` `invalid_request` with field and JSON pointer in
 * `param`.
 */
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

/**
 * Builds a text with optional white space. A space between two words stays required. So does a space at the
 * start that precedes a word, because a tool name can precede this space.
 */
const buildLiteral = (literal: string): Expression =>
  sequence(
    ...literal
      .split(/(\s(?!\w)|(?<!^|\w)\s)/)
      .map((part, at) => (at % 2 === 1 ? optional(text(part)) : text(part))),
  )

function buildArguments({ parameters, strict, field }: CallableTool, grammar: Grammar): Expression {
  try {
    // Arguments are objects even if the schema accepts other values.
    return withErrorField(field ?? 'parameters', () => addSchema(grammar, parameters ?? {}, 'objects'))
  } catch (error) {
    if (strict || !(error instanceof LlmError) || error.details.issue !== 'unsupported') throw error
    return anyObject(grammar)
  }
}
