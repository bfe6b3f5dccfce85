/**
 * Tool calls of GLM 4.5 and later, Laguna, Spark, Ling and Hunyuan 3: a name, then a key tag and a value tag per
 * argument.
 */
import type { ParseSteps } from '../../input.ts'
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

/** @param suffix at the end of each tag's name */
const createMarkup = (suffix: string): ParameterMarkup => ({
  open: `<arg_key${suffix}>`,
  keyEnds: [`</arg_key${suffix}>`],
  value: `<arg_value${suffix}>`,
  valueEnds: [`</arg_value${suffix}>`],
  close: [`</tool_call${suffix}>`, `</tool_calls${suffix}>`],
})

const hunyuanCalls = '<tool_calls:opensource>'
const hunyuanCall = '<tool_call:opensource>'
/** The markup after each opening tag. Hunyuan 3 has tags with a suffix. */
const markups: Readonly<Record<string, ParameterMarkup>> = {
  '<tool_call>': createMarkup(''),
  [hunyuanCall]: createMarkup(':opensource'),
}

export const glm: ToolCallParser = (context) =>
  parseMarkedCalls([...Object.keys(markups), hunyuanCalls], context, function* (mark) {
    const { input } = context
    yield* input.skipBlanks()
    const open = mark === hunyuanCalls ? hunyuanCall : mark
    if (mark === hunyuanCalls && !(yield* input.tryTake(open))) return false
    return yield* parseCall(context, markups[open] as ParameterMarkup)
  })

function* parseCall(context: ParserContext, markup: ParameterMarkup): ParseSteps<boolean> {
  const { input } = context
  yield* input.skipBlanks()
  const name = yield* parseToolName(context)
  if (name === undefined) return false
  yield* input.tryTake('<tool_sep:opensource>')
  yield* input.skipBlanks()
  if ((yield* input.peek()) !== '<') return false
  yield* parseParameterCall(name, context, markup)
  return true
}
