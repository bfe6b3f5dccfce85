/** Grammar of a complete output: reasoning, then tool calls, formatted content, or free text with calls. */
import { invalidRequest, LlmError } from '../errors.ts'
import { type Automaton, TooComplexError } from './automata/automaton.ts'
import { compileFullMatch, PatternError } from './automata/pattern.ts'
import type { OutputConstraint } from './constraint.ts'
import { checkGrammar } from './gbnf/check.ts'
import { choice, type Expression, empty, repeat, sequence, text } from './gbnf/expressions.ts'
import { Grammar, printRules } from './gbnf/grammar.ts'
import { buildTextUpTo } from './gbnf/text-up-to.ts'
import { buildTextRule, buildWordsRule } from './schema/automaton-rules.ts'
import { anyObject } from './schema/json.ts'
import { addSchema, withErrorField } from './schema/json-schema.ts'
import { buildCalls, buildWholeCalls } from './tool-call-grammar.ts'

/**
 * Builds GBNF, or `undefined` if any text is valid. Throws an `LlmError` `invalid_request` for unsupported
 * constraints.
 */
export function buildOutputGrammar(constraint: OutputConstraint): string | undefined {
  try {
    return buildStrictGrammar(constraint)
  } catch (error) {
    const relaxed = isTooLarge(error) ? withoutSchemas(constraint) : undefined
    if (!relaxed) throw error
    return buildStrictGrammar(relaxed)
  }
}

/** Whether the error says that the whole grammar is too large. Errors of one schema have `#` in `param`. */
const isTooLarge = (error: unknown): boolean =>
  error instanceof LlmError && error.details.issue === 'value' && !error.details.param?.includes('#')

/** Drops the parameter schemas of tools that are not strict. Returns `undefined` if there is no such tool. */
function withoutSchemas(constraint: OutputConstraint): OutputConstraint | undefined {
  const { calls } = constraint
  if (!calls?.tools.some(({ strict }) => !strict)) return undefined
  const tools = calls.tools.map((tool) => (tool.strict ? tool : { ...tool, parameters: {} }))
  return { ...constraint, calls: { ...calls, tools } }
}

function buildStrictGrammar({
  reasoningBlock,
  contentPrefix = '',
  format,
  calls,
}: OutputConstraint): string | undefined {
  const grammar = new Grammar()
  const content = format && sequence(text(contentPrefix), buildFormat(format, grammar))
  const answer = calls ? withCalls(calls, content, grammar) : content
  if (!answer) return undefined
  const rules = grammar.collectRules(reasoningBlock ? withReasoning(reasoningBlock, answer, grammar) : answer)
  if (rules.size === 0)
    throw invalidRequest('No output can satisfy the format or the tools.', {
      param: format ? 'format' : 'tools',
      issue: 'value',
    })
  return printRules(rules)
}

function buildFormat(format: NonNullable<OutputConstraint['format']>, grammar: Grammar): Expression {
  switch (format.type) {
    case 'json':
      return anyObject(grammar)
    case 'json-schema':
      return withErrorField('format.schema', () => addSchema(grammar, format.schema))
    case 'grammar':
      return withErrorField('format.source', () => grammar.include(checkGrammar(format.source)))
    case 'regex':
      return buildTextRule(compileFormat(format.pattern), grammar)
    case 'choice':
      return buildWordsRule(
        [...new Set(format.choices)].map((text) => [text, empty]),
        grammar,
      )
  }
}

function compileFormat(pattern: string): Automaton {
  try {
    return compileFullMatch(pattern)
  } catch (error) {
    if (!(error instanceof PatternError || error instanceof TooComplexError)) throw error
    throw invalidRequest(`The regular expression is not supported: ${error.message}.`, {
      param: 'format.pattern',
      issue: 'unsupported',
    })
  }
}

function withCalls(
  { tools, format, isRequired, isParallel }: NonNullable<OutputConstraint['calls']>,
  content: Expression | undefined,
  grammar: Grammar,
): Expression | undefined {
  const { mark, prefix = '' } = format
  if (!isRequired && !content && mark === undefined)
    return format.isWholeOutput && buildWholeCalls(tools, format, isParallel, grammar)
  const calls = buildCalls(tools, format, isParallel, grammar)
  if (!isRequired && !content && mark !== undefined)
    return buildTextUpTo(grammar, mark, (rest) => (isParallel ? sequence(calls, rest) : calls), true)
  const prefixedCalls = sequence(text(prefix + (mark ?? '')), calls)
  return isRequired || !content ? prefixedCalls : choice(prefixedCalls, content)
}

function withReasoning(
  { open, close, isOpen }: NonNullable<OutputConstraint['reasoningBlock']>,
  answer: Expression,
  grammar: Grammar,
): Expression {
  const answerRule = grammar.define('answer', answer)
  const reasoning = buildTextUpTo(grammar, close, () => sequence(repeat(text('\n'), 0, 2), answerRule), false)
  return isOpen ? reasoning : choice(answerRule, sequence(text(open), reasoning))
}
