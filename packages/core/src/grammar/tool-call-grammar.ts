/** Grammar of tool calls in the format of a model family. */
import { LlmError } from '../errors.ts'
import type { CallableTool, ToolCallFormat } from './constraint.ts'
import { choice, type Expression, optional, sequence, text } from './gbnf/expressions.ts'
import type { Grammar } from './gbnf/grammar.ts'
import { buildTextUnless } from './gbnf/text-up-to.ts'
import { buildWordsRule } from './schema/automaton-rules.ts'
import { addSchema, unsatisfiable, withErrorField } from './schema/json-schema.ts'
import { createLiteralNotation, jsonNotation, type Notation } from './schema/notation.ts'
import { buildTaggedArguments } from './tagged-arguments.ts'

/** Maximum number of parallel tool calls. A model that makes more calls is in a loop. */
const maxCalls = 32

/**
 * Builds the tool calls after the mark. Throws an `LlmError` `invalid_request` with field and JSON pointer in
 * `param`.
 */
export function buildCalls(
  tools: readonly CallableTool[],
  format: ToolCallFormat,
  isParallel: boolean,
  grammar: Grammar,
): Expression {
  const {
    open = '',
    call: [before],
    separator,
    close = '',
  } = format
  const named = buildNamedCalls(tools, format, grammar)
  const call = grammar.define('call', sequence(buildLiteral(before), buildWordsRule(named, grammar)))
  const more = isParallel && separator !== undefined ? maxCalls - 1 : 0
  return sequence(
    buildLiteral(open),
    call,
    grammar.repeat(sequence(buildLiteral(separator ?? ''), call), 0, more),
    buildLiteral(close),
  )
}

/**
 * Builds a text that is a call if it starts with the text before the name and the name of a tool. Models write a
 * semicolon between two calls.
 */
export function buildWholeCalls(
  tools: readonly CallableTool[],
  format: ToolCallFormat,
  isParallel: boolean,
  grammar: Grammar,
): Expression {
  const [before] = format.call
  const named = buildNamedCalls(tools, format, grammar)
  const call = grammar.define('call', sequence(buildLiteral(before), buildWordsRule(named, grammar)))
  const further = grammar.repeat(sequence(buildLiteral('; '), call), 0, isParallel ? maxCalls - 1 : 0)
  return buildTextUnless(
    named.map(([name, rest]) => [before + name, sequence(rest, further)]),
    grammar,
  )
}

/** Builds, for each tool, its name and the rest of the call. */
function buildNamedCalls(
  tools: readonly CallableTool[],
  { call: [before, between, after], parameters, quote }: ToolCallFormat,
  grammar: Grammar,
): readonly (readonly [name: string, rest: Expression])[] {
  const isJson = before.endsWith('"')
  const bridgeRule = grammar.define('between', choice(...[between].flat().map(buildLiteral)))
  const end = buildLiteral(after)
  const notation = quote === undefined ? jsonNotation : createLiteralNotation(quote)
  const values = tools.map((tool) =>
    parameters
      ? buildTaggedArguments(tool, parameters, end, grammar)
      : sequence(buildArguments(tool, notation, grammar), end),
  )
  const impossibleIndex = grammar.findImpossible(values)
  if (impossibleIndex !== undefined)
    withErrorField(tools[impossibleIndex]?.field ?? 'parameters', () => {
      throw unsatisfiable()
    })
  return tools.map(({ name }, index) => [
    isJson ? JSON.stringify(name).slice(1, -1) : name,
    sequence(bridgeRule, values[index] as Expression),
  ])
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

function buildArguments(
  { parameters, strict, field }: CallableTool,
  notation: Notation,
  grammar: Grammar,
): Expression {
  try {
    // Arguments are objects even if the schema accepts other values.
    return withErrorField(field ?? 'parameters', () =>
      addSchema(grammar, parameters ?? {}, 'objects', 'declared', notation),
    )
  } catch (error) {
    if (strict || !(error instanceof LlmError) || error.details.issue !== 'unsupported') throw error
    return notation.buildAnyObject(grammar)
  }
}
