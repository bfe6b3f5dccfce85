/** Tool calls as JSON without markup: an object or a list of objects at the start of a line. */
import { parseCallObjects } from '../call-objects.ts'
import type { ToolCallParser } from '../parser-context.ts'

const fence = '```'

/**
 * @param tags opening tags that start calls anywhere in a line, with the closing tags that the model may omit
 */
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

/**
 * Models often use these tags because of their training, although the tool description does not mention them.
 */
export const genericTags = { '<tool_call>': '</tool_call>' } as const
export const generic = createBareJsonParser(genericTags)
