/** Tool calls of GLM 4.5 and later: a name, then a key tag and a value tag per argument. */
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

const parameterMarkup: ParameterMarkup = {
  open: '<arg_key>',
  keyEnds: ['</arg_key>'],
  value: '<arg_value>',
  valueEnds: ['</arg_value>'],
  close: ['</tool_call>'],
}

export const glm: ToolCallParser = (context) =>
  parseMarkedCalls(['<tool_call>'], context, function* () {
    const { input } = context
    yield* input.skipBlanks()
    const name = yield* parseToolName(context)
    if (name === undefined) return false
    yield* input.skipBlanks()
    const next = yield* input.peek()
    if (next !== '<') return false
    yield* parseParameterCall(name, context, parameterMarkup)
    return true
  })
