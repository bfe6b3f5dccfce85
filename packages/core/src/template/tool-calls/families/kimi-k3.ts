/** Output of Kimi K3: sections with reasoning, text and calls. A call has a tag per argument. */
import type { ParseSteps } from '../../input.ts'
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'
import { parseSections, type SectionMarkup } from '../sections.ts'

const markup: SectionMarkup = {
  think: '<|open|>think<|sep|>',
  call: '<|open|>call tool="',
  others: [
    '<|close|>think<|sep|>',
    '<|open|>response<|sep|>',
    '<|close|>response<|sep|>',
    '<|open|>tools<|sep|>',
    '<|close|>tools<|sep|>',
    '<|close|>message<|sep|>',
    '<|end_of_msg|>',
  ],
}

const typeEnds = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'].map(
  (type) => `" type="${type}"<|sep|>`,
)
const parameterMarkup: ParameterMarkup = {
  open: '<|open|>argument key="',
  keyEnds: [...typeEnds, '"<|sep|>'],
  valueEnds: ['<|close|>argument<|sep|>'],
  close: ['<|close|>call<|sep|>'],
}
const maxIndexLength = 32

export const kimiK3: ToolCallParser = (context) => parseSections(context, markup, parseCall)

function* parseCall(context: ParserContext): ParseSteps<boolean> {
  const { input } = context
  const name = yield* parseToolName(context)
  if (name === undefined || !(yield* input.tryTake('"'))) return false
  for (let length = 0; !(yield* input.tryTake('<|sep|>')); length++) {
    if (length === maxIndexLength || (yield* input.peek()) === '') return false
    input.skip()
  }
  yield* parseParameterCall(name, context, parameterMarkup)
  return true
}
