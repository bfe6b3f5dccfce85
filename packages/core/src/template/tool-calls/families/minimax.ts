/**
 * Tool calls of MiniMax-M2: a tag for the function, and a tag per parameter. MiniMax-M3 writes nested tags for
 * objects and arrays, too.
 */
import type { ParseSteps } from '../../input.ts'
import { NestedTagParser, namespace } from '../nested-tags.ts'
import { type ParameterMarkup, parseParameterCall } from '../parameters.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const invoke = '<invoke name="'
const parameterMarkup: ParameterMarkup = {
  open: '<parameter name="',
  keyEnds: ['">'],
  valueEnds: ['</parameter>'],
  close: ['</invoke>', '</minimax:tool_call>'],
}

export const minimax: ToolCallParser = (context) =>
  parseMarkedCalls(['<minimax:tool_call>', invoke], context, function* (mark) {
    const { input } = context
    yield* input.skipBlanks()
    if (mark !== invoke && !(yield* input.tryTake(invoke))) return false
    const name = yield* parseToolName(context)
    if (name === undefined || !(yield* input.tryTake('">'))) return false
    yield* parseParameterCall(name, context, parameterMarkup)
    return true
  })

const namespacedCalls = `${namespace}<tool_call>`
const namespacedInvoke = `${namespace}${invoke}`

export const minimaxM3: ToolCallParser = (context) =>
  parseMarkedCalls([namespacedCalls, namespacedInvoke], context, function* (mark) {
    const { input } = context
    yield* input.skipBlanks()
    if (mark === namespacedCalls && !(yield* input.tryTake(namespacedInvoke))) return false
    return yield* parseNamespacedCall(context)
  })

function* parseNamespacedCall(context: ParserContext): ParseSteps<boolean> {
  const { input, output, tools } = context
  const name = yield* parseToolName(context)
  if (name === undefined || !(yield* input.tryTake('">'))) return false
  input.dropCapture()
  output.startCall(name)
  const parser = new NestedTagParser(input, (json) => output.addArguments(json))
  const schema = tools.find((tool) => tool.name === name)?.parameters ?? {}
  if (!(yield* parser.parseObject('invoke', schema))) {
    output.markIncomplete()
    return true
  }
  yield* input.skipBlanks()
  yield* input.tryTakeClosing(`${namespace}</tool_call>`)
  return true
}
