/** Tool calls of MiniCPM5: a tag for the function, and a tag per parameter, whose value can be in CDATA. */
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

const open = '<function name="'
const parameterMarkup: ParameterMarkup = {
  open: '<param name="',
  keyEnds: ['">'],
  quote: ['<![CDATA[', ']]>'],
  valueEnds: ['</param>'],
  close: ['</function>'],
}

export const minicpm: ToolCallParser = (context) =>
  parseMarkedCalls([open], context, function* () {
    const { input } = context
    const name = yield* parseToolName(context)
    if (name === undefined || !(yield* input.tryTake('">'))) return false
    yield* parseParameterCall(name, context, parameterMarkup)
    return true
  })
