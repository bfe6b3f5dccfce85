/**
 * Tool calls of Granite. Version 3 writes a special token and a list of JSON objects. Versions since 4 write
 * JSON between tags.
 */
import { createTaggedJsonParser } from './hermes.ts'

export const granite = createTaggedJsonParser({
  '<|tool_call|>': '<|/tool_call|>',
  '<tool_call>': '</tool_call>',
})
