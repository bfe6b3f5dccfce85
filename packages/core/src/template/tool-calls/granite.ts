/** Granite: a list of JSON objects behind a token of its own, since version 4 JSON between tags. */
import { createTaggedJsonParser } from './hermes.ts'

export const granite = createTaggedJsonParser({
  '<|tool_call|>': '<|/tool_call|>',
  '<tool_call>': '</tool_call>',
})
