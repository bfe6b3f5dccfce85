/** Tool calls of Kimi K2: an id with the name of the tool and a number, then JSON arguments. */
import type { ParseSteps } from '../../input.ts'
import { parseCallArguments, parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const section = ['<|tool_calls_section_begin|>', '<|tool_calls_section_end|>'] as const
const call = ['<|tool_call_begin|>', '<|tool_call_end|>'] as const

export const kimi: ToolCallParser = (context) =>
  parseMarkedCalls([section[0], call[0]], context, function* (mark) {
    const { input } = context
    yield* input.skipBlanks()
    if (mark === section[0] && !(yield* input.tryTake(call[0]))) return false
    return yield* parseCall(context)
  })

function* parseCall(context: ParserContext): ParseSteps<boolean> {
  const { input } = context
  yield* input.skipBlanks()
  yield* input.tryTake('functions.')
  const name = yield* parseToolName(context)
  if (name === undefined) return false
  if (yield* input.tryTake(':')) yield* input.takeRun('0123456789')
  yield* input.skipBlanks()
  if (!(yield* input.tryTake('<|tool_call_argument_begin|>'))) return false
  if (!(yield* parseCallArguments(name, context))) return false
  for (const end of [call[1], section[1]]) {
    yield* input.skipBlanks()
    yield* input.tryTakeClosing(end)
  }
  return true
}
