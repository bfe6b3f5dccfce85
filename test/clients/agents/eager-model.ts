/**
 * Answers of a model that calls the first tool whenever there is one, as LangChain's standard tests expect it. The
 * arguments follow the schema. A text in quotes becomes their text.
 */
import type { GenerateRequest } from '@modelmount/core/engine'
import type { ScriptedAnswer } from '@modelmount/core/testing'
import { readConversation } from './conversation.ts'
import { exampleOf } from './schema-example.ts'

export function callTools(request: GenerateRequest): ScriptedAnswer {
  const { results, text, tools } = readConversation(request)
  const quoted = [...text.matchAll(/'([^']+)'/g)].map(([, inner = '']) => inner)
  const [tool] = tools
  if (tool && results.length === 0)
    return [{ call: tool.name, arguments: exampleOf(tool.parameters, quoted[0]) }]
  const { format } = request
  if (format?.type === 'json-schema') return JSON.stringify(exampleOf(format.schema))
  // The prompt names the keys.
  if (format?.type === 'json') return JSON.stringify(Object.fromEntries(quoted.map((key) => [key, 'Paris'])))
  return 'Hello there.'
}
