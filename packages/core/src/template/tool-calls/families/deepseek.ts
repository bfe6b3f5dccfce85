/**
 * Tool calls of DeepSeek. R1 and V3 write a name and JSON arguments. Models since V3.2 write a tag per
 * parameter.
 */
import type { ParseSteps } from '../../input.ts'
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseCallArguments, parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const listTags = ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'] as const
const callTags = ['<｜tool▁call▁begin｜>', '<｜tool▁call▁end｜>'] as const
const separator = '<｜tool▁sep｜>'
const invoke = '<｜DSML｜invoke name="'
const parameterMarkup: ParameterMarkup = {
  open: '<｜DSML｜parameter name="',
  keyEnds: ['" string="true">', '" string="false">'],
  valueEnds: ['</｜DSML｜parameter>'],
  close: ['</｜DSML｜invoke>', '</｜DSML｜function_calls>', '</｜DSML｜tool_calls>'],
}

export const deepseek: ToolCallParser = (context) =>
  parseMarkedCalls(
    [listTags[0], callTags[0], '<｜DSML｜function_calls>', '<｜DSML｜tool_calls>', invoke],
    context,
    function* (mark) {
      const { input } = context
      yield* input.skipBlanks()
      if (mark === callTags[0]) return yield* parseJsonCall(context)
      if (mark === listTags[0]) return (yield* input.tryTake(callTags[0])) && (yield* parseJsonCall(context))
      if (mark !== invoke && !(yield* input.tryTake(invoke))) return false
      const name = yield* parseToolName(context)
      if (name === undefined || !(yield* input.tryTake('">'))) return false
      yield* parseParameterCall(name, context, parameterMarkup)
      return true
    },
  )

function* parseJsonCall(context: ParserContext): ParseSteps<boolean> {
  const { input } = context
  // R1 writes the type of the call before the name. V3.1 does not.
  yield* input.tryTake(`function${separator}`)
  const name = yield* parseToolName(context)
  if (name === undefined) return false
  yield* input.tryTake(separator)
  yield* input.skipBlanks()
  yield* input.tryTake('```json')
  if (!(yield* parseCallArguments(name, context))) return false
  for (const end of ['```', callTags[1], listTags[1]]) {
    yield* input.skipBlanks()
    yield* input.tryTakeClosing(end)
  }
  return true
}
