/** Output of Solar Open: messages with reasoning, calls or text. Each call has an id, a name and JSON arguments. */
import type { ParseSteps } from '../../input.ts'
import { parseCallArguments, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'
import { parseSections, type SectionMarkup } from '../sections.ts'

const markup: SectionMarkup = {
  think: '<|think|>',
  call: '<|tool_call:begin|>',
  others: ['<|content|>', '<|end|>', '<|begin|>assistant', '<|tool_calls|>', '<|calls|>'],
}
const maxIdLength = 64

export const solar: ToolCallParser = (context) => parseSections(context, markup, parseCall)

function* parseCall(context: ParserContext): ParseSteps<boolean> {
  const { input } = context
  for (let length = 0; !(yield* input.tryTake('<|tool_call:name|>')); length++) {
    if (length === maxIdLength || (yield* input.peek()) === '') return false
    input.skip()
  }
  const name = yield* parseToolName(context)
  if (name === undefined || !(yield* input.tryTake('<|tool_call:args|>'))) return false
  if (!(yield* parseCallArguments(name, context))) return false
  yield* input.skipBlanks()
  yield* input.tryTakeClosing('<|tool_call:end|>')
  return true
}
