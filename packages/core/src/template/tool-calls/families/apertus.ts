/** Tool calls of Apertus: a list of objects, whose only key is the name of the tool. */
import type { ParseSteps } from '../../input.ts'
import { parseOneOfStrings } from '../json.ts'
import { parseCallArguments, parseMarkedCalls } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

export const apertus: ToolCallParser = (context) =>
  parseMarkedCalls(['<|tools_prefix|>'], context, function* () {
    const { input, output } = context
    let hasCall = false
    for (;;) {
      yield* input.takeRun(hasCall ? ' \t\r\n,' : ' \t\r\n[')
      if ((yield* input.peek()) !== '{') break
      if (hasCall) input.startCapture()
      if (!(yield* parseCall(context))) {
        if (hasCall) output.addText('text', input.takeCaptured())
        return hasCall
      }
      hasCall = true
    }
    if (!hasCall) return false
    yield* input.takeRun('] \t\r\n')
    yield* input.tryTakeClosing('<|tools_suffix|>')
    return true
  })

function* parseCall(context: ParserContext): ParseSteps<boolean> {
  const { input, names } = context
  input.skip()
  yield* input.skipBlanks()
  const name = yield* parseOneOfStrings(input, names)
  if (name === undefined) return false
  yield* input.skipBlanks()
  if (!(yield* input.tryTake(':')) || !(yield* parseCallArguments(name, context))) return false
  yield* input.skipBlanks()
  yield* input.tryTakeClosing('}')
  return true
}
