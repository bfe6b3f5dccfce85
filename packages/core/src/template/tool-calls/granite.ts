/** Granite: a special token and a list of JSON objects in version 3, JSON between tags since version 4. */
import { createTaggedJsonParser } from './hermes.ts'

export const granite = createTaggedJsonParser({
  '<|tool_call|>': '<|/tool_call|>',
  '<tool_call>': '</tool_call>',
})
