/** Output of Solar Open: messages with reasoning, calls or text. Each call has an id, a name and JSON arguments. */
import type { ParseSteps } from '../../input.ts'
import { parseCallArguments, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const think = '<|think|>'
const call = '<|tool_call:begin|>'
/** Markup between messages. */
const others = ['<|content|>', '<|end|>', '<|begin|>assistant', '<|tool_calls|>', '<|calls|>'] as const
const maxIdLength = 64

export const solar: ToolCallParser = function* (context) {
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
