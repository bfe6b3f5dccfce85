/**
 * Answers of a model that does what the last user message says, so that an agent's whole loop is deterministic:
 * - Each line `call <tool> <arguments as JSON>` is a tool call, all of them parallel.
 * - After results of tools, the answer repeats them.
 * - A forced call has arguments after the schema, and an answer with a schema is an example of it.
 * - Otherwise, the answer is the number of user messages, and the last one.
 */
import type { GenerateRequest } from '@modelmount/core/engine'
import type { ScriptedAnswer } from '@modelmount/core/testing'
import { readConversation } from './conversation.ts'
import { exampleOf } from './schema-example.ts'

export function followInstructions(request: GenerateRequest): ScriptedAnswer {
  const { turns, text, results, tools, isForced } = readConversation(request)
  if (results.length > 0) return `Results: ${results.join(' | ')}`
  const calls = [...text.matchAll(/^call (\S+) (\{.*\})$/gm)].flatMap(([, name = '', json = '']) =>
    tools.some((tool) => tool.name === name) ? [{ call: name, arguments: JSON.parse(json) }] : [],
  )
  if (calls.length > 0) return calls
  const [tool] = tools
  if (tool && isForced) return [{ call: tool.name, arguments: exampleOf(tool.parameters) }]
  const { format } = request
  return format?.type === 'json-schema'
    ? JSON.stringify(exampleOf(format.schema))
    : `User message ${turns}: ${text}`
}
