/** A whole answer as one grammar: a thought, then calls of tools, text that is held to a format, or free text with calls in it. */
import { invalidRequest, LlmError } from '../errors.ts'
import { checkGrammar } from './gbnf/check.ts'
import { choice, type Expression, repeat, sequence, text } from './gbnf/expressions.ts'
import { Grammar, print } from './gbnf/grammar.ts'
import { textUpTo } from './gbnf/up-to.ts'
import { anyObject } from './schema/json.ts'
import { addSchema, inField } from './schema/json-schema.ts'
import { type CallableTool, type CallForm, callsOf } from './tool-call-grammar.ts'

export interface AnswerForm {
  readonly thought?: {
    readonly open: string
    readonly close: string
    /** It is in the prompt already; else the model may think or not. */
    readonly isOpen: boolean
  }
  /** In front of what is said to the user. */
  readonly lead?: string
  /** What is said; absent: any text. */
  readonly format?:
    | { readonly type: 'json' }
    | { readonly type: 'json-schema'; readonly schema: object | boolean }
    | { readonly type: 'grammar'; readonly source: string }
  readonly calls?: {
    readonly tools: readonly CallableTool[]
    readonly form: CallForm
    readonly forced: boolean
    readonly parallel: boolean
  }
}

/** GBNF; `undefined` where any text will do. Throws `invalid_request` for what no grammar can say. */
export function answerGrammar(form: AnswerForm): string | undefined {
  try {
    return strictGrammar(form)
  } catch (error) {
    const looser = isTooLarge(error) ? withoutSchemas(form) : undefined
    if (!looser) throw error
    return strictGrammar(looser)
  }
}

/** It is about the whole, not a place in one schema. */
const isTooLarge = (error: unknown): boolean =>
  error instanceof LlmError && error.details.issue === 'value' && !error.details.param?.includes('#')

/** The arguments of tools that are not strict may be any object; nothing where all are. */
function withoutSchemas(form: AnswerForm): AnswerForm | undefined {
  const { calls } = form
  if (!calls?.tools.some(({ strict }) => !strict)) return undefined
  const tools = calls.tools.map((tool) => (tool.strict ? tool : { ...tool, parameters: {} }))
  return { ...form, calls: { ...calls, tools } }
}

function strictGrammar({ thought, lead = '', format, calls }: AnswerForm): string | undefined {
  const grammar = new Grammar()
  const said = format && sequence(text(lead), formatted(format, grammar))
  const answer = calls ? withCalls(calls, said, grammar) : said
  if (!answer) return undefined
  const rules = grammar.rules(thought ? behindThought(thought, answer, grammar) : answer)
  if (rules.size === 0)
    throw invalidRequest('Nothing can satisfy what the answer is held to.', {
      param: format ? 'format' : 'tools',
      issue: 'value',
    })
  return print(rules)
}

function formatted(format: NonNullable<AnswerForm['format']>, grammar: Grammar): Expression {
  switch (format.type) {
    case 'json':
      return anyObject(grammar)
    case 'json-schema':
      return inField('format.schema', () => addSchema(grammar, format.schema))
    case 'grammar':
      return inField('format.source', () => grammar.include(checkGrammar(format.source)))
  }
}

function withCalls(
  { tools, form, forced, parallel }: NonNullable<AnswerForm['calls']>,
  said: Expression | undefined,
  grammar: Grammar,
): Expression | undefined {
  const { mark, lead = '' } = form
  if (!forced && !said && mark === undefined) return undefined
  const behind = callsOf(tools, form, parallel, grammar)
  if (!forced && !said && mark !== undefined)
    return textUpTo(grammar, mark, (again) => (parallel ? sequence(behind, again) : behind), true)
  const called = sequence(text(lead + (mark ?? '')), behind)
  return forced || !said ? called : choice(called, said)
}

function behindThought(
  { open, close, isOpen }: NonNullable<AnswerForm['thought']>,
  answer: Expression,
  grammar: Grammar,
): Expression {
  const said = grammar.define('answer', answer)
  const thought = textUpTo(grammar, close, () => sequence(repeat(text('\n'), 0, 2), said), false)
  return isOpen ? thought : choice(said, sequence(text(open), thought))
}
