/**
 * Tool calls of Hermes, Qwen and many other models: JSON between tags. Granite, Command R, Nemotron and
 * Apriel use other tags.
 */
import { parseCallObjects } from '../call-objects.ts'
import { parseMarkedCalls } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

/** @param tags opening tags, with the closing tags that the model may omit */
export const createTaggedJsonParser =
  (tags: Readonly<Record<string, string>>): ToolCallParser =>
  (context) =>
    parseMarkedCalls(Object.keys(tags), context, function* (open) {
      const isCall = yield* parseCallObjects(context, true)
      if (isCall) yield* context.input.tryTakeClosing(tags[open] as string)
      return isCall
    })

export const hermes = createTaggedJsonParser({
  '<tool_call>': '</tool_call>',
  '<tool_calls>': '</tool_calls>',
  '<TOOLCALL>': '</TOOLCALL>',
  '<|START_ACTION|>': '<|END_ACTION|>',
})
