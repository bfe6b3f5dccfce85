/** Output of Kimi K3: sections with reasoning, text and calls. A call has a tag per argument. */
import type { ParseSteps } from '../../input.ts'
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const think = '<|open|>think<|sep|>'
const call = '<|open|>call tool="'
/** Markup between sections. */
const others = [
  '<|close|>think<|sep|>',
  '<|open|>response<|sep|>',
  '<|close|>response<|sep|>',
  '<|open|>tools<|sep|>',
  '<|close|>tools<|sep|>',
  '<|close|>message<|sep|>',
  '<|end_of_msg|>',
] as const

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

export const kimiK3: ToolCallParser = function* (context) {
  const { input, output, prompt } = context
  let type: 'reasoning' | 'text' = prompt.endsWith(think) ? 'reasoning' : 'text'
  for (;;) {
    const mark = yield* input.takeUpTo([think, call, ...others], (text) => output.addText(type, text))
    if (mark === undefined) return
    input.startCapture()
    input.skip(mark.length)
    if (mark === call && !(yield* parseCall(context))) {
      output.addText(type, input.takeCaptured())
      continue
    }
    input.dropCapture()
    output.markBoundary()
    type = mark === think ? 'reasoning' : 'text'
  }
}

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
