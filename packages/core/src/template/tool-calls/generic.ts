/** Calls as JSON with nothing that marks them: an object or a list of them at the beginning of a line. */
import { parseCallObjects } from './call-objects.ts'
import type { ToolCallParser } from './parser-context.ts'

const fence = '```'

/** @param tags that also mark calls, wherever they stand: opening → closing, which is optional */
export const createBareJsonParser = (tags: Readonly<Record<string, string>>): ToolCallParser =>
  function* (context) {
    const { input, output } = context
    const emitText = (text: string): void => output.addText('text', text)
    for (;;) {
      input.startCapture()
      yield* input.skipBlanks()
      const isFenced = yield* input.tryTake(fence)
      if (isFenced) yield* input.tryTake('json')
      if (yield* parseCallObjects(context, false)) {
        yield* input.skipBlanks()
        if (isFenced) yield* input.tryTakeClosing(fence)
        continue
      }
      emitText(input.takeCaptured())
      for (;;) {
        const mark = yield* input.takeUpTo(['\n', ...Object.keys(tags)], emitText)
        if (mark === undefined) return
        if (mark === '\n') break
        input.startCapture()
        input.skip(mark.length)
        if (yield* parseCallObjects(context, true)) yield* input.tryTakeClosing(tags[mark] as string)
        else emitText(input.takeCaptured())
      }
    }
  }

/** Also of models that were told of tools in plain words, and know tags from their training. */
export const genericTags = { '<tool_call>': '</tool_call>' } as const
export const generic = createBareJsonParser(genericTags)
