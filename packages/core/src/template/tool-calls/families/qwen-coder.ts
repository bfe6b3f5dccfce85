/**
 * Tool calls of Qwen3-Coder, Qwen 3.5, Nemotron 3, StepFun and Seed-OSS: a tag for the function, and a tag
 * per parameter.
 */
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

const parameterMarkup: ParameterMarkup = {
  open: '<parameter=',
  keyEnds: ['>'],
  padding: '\n',
  valueEnds: ['\n</parameter>', '</parameter>'],
  close: ['</function>', '</tool_call>', '</seed:tool_call>'],
}
const open = '<function='

export const qwenCoder: ToolCallParser = (context) =>
  parseMarkedCalls(['<tool_call>', '<seed:tool_call>', open], context, function* (mark) {
    const { input } = context
    yield* input.skipBlanks()
    if (mark !== open && !(yield* input.tryTake(open))) return false
    const name = yield* parseToolName(context)
    if (name === undefined || !(yield* input.tryTake('>'))) return false
    yield* parseParameterCall(name, context, parameterMarkup)
    return true
  })
