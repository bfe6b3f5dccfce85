/** Parsing steps that the parsers of several model families share. */
import type { ParseSteps } from '../input.ts'
import { copyObject, copyQuotedObject } from './json.ts'
import type { ParserContext } from './parser-context.ts'

/**
 * Parses text with calls after marks such as `<tool_call>`. A mark without a valid call after it stays text.
 */
export function* parseMarkedCalls(
  marks: readonly string[],
  { input, output }: ParserContext,
  call: (mark: string) => ParseSteps<boolean>,
): ParseSteps {
  for (;;) {
    const mark = yield* input.takeUpTo(marks, (text) => output.addText('text', text))
    if (mark === undefined) return
    input.startCapture()
    input.skip(mark.length)
    if (yield* call(mark)) continue
    // A call that a limit cuts off before its arguments is neither a call nor text.
    if (yield* input.isCutOff()) input.dropCapture()
    else output.addText('text', input.takeCaptured())
  }
}

/** Parses an unquoted tool name. Returns `undefined` if the text is not the name of a tool. */
export function* parseToolName({ input, names }: ParserContext): ParseSteps<string | undefined> {
  let text = ''
  for (;;) {
    const next = text + (yield* input.peek())
    if (next === text || !names.some((name) => name.startsWith(next))) break
    text = next
    input.skip()
  }
  return names.includes(text) ? text : undefined
}

/** Parses the arguments after a tool name: a JSON object, or a JSON object encoded as a string. */
export function* parseCallArguments(
  name: string | undefined,
  { input, output }: ParserContext,
): ParseSteps<boolean> {
  yield* input.skipBlanks()
  const first = yield* input.peek()
  if (name === undefined || (first !== '{' && first !== '"')) return false
  input.dropCapture()
  output.startCall(name)
  const copy = first === '{' ? copyObject : copyQuotedObject
  if (!(yield* copy(input, (json) => output.addArguments(json)))) output.markIncomplete()
  return true
}
