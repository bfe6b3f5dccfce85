/**
 * Tool calls of Functionary. Version 3.1 writes tags with the tool name. Version 3.2 writes messages with a
 * recipient.
 */
import type { ParseSteps } from '../../input.ts'
import { parseCallArguments, parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const tag = '<function='
const recipient = '>>>'

export const functionary: ToolCallParser = function* (context) {
  const { input, output, prompt } = context
  if (prompt.endsWith(recipient)) {
    input.startCapture()
    if (!(yield* parseAddressed(context))) output.addText('text', input.takeCaptured())
  }
  yield* parseMarkedCalls([tag, recipient], context, (mark) =>
    mark === tag ? parseTagged(context) : parseAddressed(context),
  )
}

function* parseTagged(context: ParserContext): ParseSteps<boolean> {
  const { input } = context
  const name = yield* parseToolName(context)
  if (name === undefined || !(yield* input.tryTake('>')) || !(yield* parseCallArguments(name, context)))
    return false
  yield* input.skipBlanks()
  yield* input.tryTakeClosing('</function>')
  return true
}

function* parseAddressed(context: ParserContext): ParseSteps<boolean> {
  const { input, output } = context
  if (yield* input.tryTake('all\n')) {
    input.dropCapture()
    output.markBoundary()
    return true
  }
  const name = yield* parseToolName(context)
  return name !== undefined && (yield* parseCallArguments(name, context))
}
