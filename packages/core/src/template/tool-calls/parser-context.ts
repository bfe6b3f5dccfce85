/** What the parsers of all families have in their hands. */
import type { Tool } from '../../engine/request.ts'
import type { ParserInput, ParseSteps } from '../input.ts'
import type { OutputBuilder } from '../output-part.ts'
import { copyObject, copyQuotedObject } from './json.ts'

export interface ParserContext {
  readonly input: ParserInput
  readonly output: OutputBuilder
  readonly tools: readonly Tool[]
  readonly names: readonly string[]
  /** The end of it: some templates open what the answer begins with. */
  readonly prompt: string
}

/** Reads a whole answer, in one family's words. What calls none of the tools is text. */
export type ToolCallParser = (context: ParserContext) => ParseSteps

/** All is text but what stands behind a mark, where `call` finds a call there; else the mark is text, too. */
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
    if (!(yield* call(mark))) output.addText('text', input.takeCaptured())
  }
}

/** A tool's name, without anything around it; undefined as soon as it cannot be one. */
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

/** A call whose name was in front, where an object stands here, perhaps as a string. */
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
