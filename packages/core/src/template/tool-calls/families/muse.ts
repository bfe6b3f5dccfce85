/**
 * Output of Muse: messages to the model itself (reasoning), to the user or to a tool. A call has a tag per
 * parameter.
 */
import type { ParseSteps } from '../../input.ts'
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const start = '<|start|>assistant'
const message = '<|message|>'
const ends = ['<|eom|>', '<|eot|>', '</atem:function_calls>'] as const
const calls = '<atem:function_calls>'
const invoke = '<atem:invoke name="'
const parameterMarkup: ParameterMarkup = {
  open: '<atem:parameter name="',
  keyEnds: ['">'],
  valueEnds: ['</atem:parameter>'],
  close: ['</atem:invoke>'],
}
/** Longest header of a message, in characters. Longer text is not a header. */
const maxHeaderLength = 200

export const muse: ToolCallParser = function* (context) {
  const { input, output, prompt } = context
  let type: 'reasoning' | 'text' = /to=self<\|message\|>$/.test(prompt) ? 'reasoning' : 'text'
  if (prompt.endsWith('assistant')) type = yield* parseHeader(context)
  for (;;) {
    const marks = [start, calls, invoke, ...ends]
    const mark = yield* input.takeUpTo(marks, (text) => output.addText(type, text))
    if (mark === undefined) return
    input.startCapture()
    input.skip(mark.length)
    if (mark === invoke && !(yield* parseCall(context)) && !(yield* input.isCutOff())) {
      output.addText(type, input.takeCaptured())
      continue
    }
    input.dropCapture()
    output.markBoundary()
    if (mark === start) type = yield* parseHeader(context)
  }
}

/** Parses the recipient of a message. Text that is not a header becomes text for the user. */
function* parseHeader({ input, output }: ParserContext): ParseSteps<'reasoning' | 'text'> {
  input.startCapture()
  yield* input.skipBlanks()
  let recipient = ''
  if (yield* input.tryTake('to=')) {
    for (let next = yield* input.peek(); !' \n<'.includes(next); next = yield* input.peek()) {
      if (recipient.length === maxHeaderLength) break
      recipient += next
      input.skip()
    }
  }
  if (yield* input.tryTake(message)) {
    input.dropCapture()
    output.markBoundary()
  } else if (recipient !== '' && (yield* input.isCutOff())) input.dropCapture()
  else output.addText('text', input.takeCaptured())
  return recipient === 'self' ? 'reasoning' : 'text'
}

function* parseCall(context: ParserContext): ParseSteps<boolean> {
  const { input } = context
  const name = yield* parseToolName(context)
  if (name === undefined || !(yield* input.tryTake('">'))) return false
  yield* parseParameterCall(name, context, parameterMarkup)
  return true
}
