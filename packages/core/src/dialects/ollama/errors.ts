/** `LlmError` as Ollama says it: one text. Shape: Ollama API reference, "Errors". */
import type { LlmError } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { empty, json, text } from '../../http/respond.ts'
import { jsonLine } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'
import { createFieldMapper } from '../fields.ts'

export function renderError(error: LlmError): HttpResponse {
  const status = error.status
  if (error.details.page) return empty(status)
  // The only errors that are no JSON: Ollama's router says them, and not its API.
  if (error.code === 'method_not_allowed') return text(`${status} method not allowed`, status)
  if (error.details.path !== undefined) return text(`${status} page not found`, status)
  return json({ error: messageOf(error) }, status, retryHeaders(error))
}

/** What ends a stream that has already begun. */
export const renderErrorFrame = (error: LlmError): string => jsonLine({ error: messageOf(error) })

/** Some messages are read by machines: clients look for these words. */
function messageOf({ code, message, details }: LlmError): string {
  const { inputTokens, contextSize, model, param = '' } = details
  if (details.emptyBody) return 'missing request body'
  if (code === 'not_found' && model !== undefined) return `model '${model}' not found`
  if (code === 'context_length' && inputTokens !== undefined)
    return `the prompt is longer than the context length currently available to the model: it has ${inputTokens} tokens, and the context holds ${contextSize}`
  const field = toField(param)
  return field === param ? message : `invalid ${field}: ${message}`
}

/** Of a schema, where it is wrong, the message says itself. */
const toField = createFieldMapper([
  [/^format\.schema.*/s, 'format'],
  [/^(tools\[\d+\])\.parameters.*/s, '$1.function.parameters'],
])
