/** `LlmError` in Ollama's form, which is one text. Shape: Ollama API reference, "Errors". */
import type { LlmError } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { empty, json, text } from '../../http/respond.ts'
import { jsonLine } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'
import { createFieldMapper } from '../fields.ts'

export function renderError(error: LlmError): HttpResponse {
  const status = error.status
  if (error.details.page) return empty(status)
  // Plain text, as Ollama's router responds.
  if (error.code === 'method_not_allowed') return text(`${status} method not allowed`, status)
  if (error.details.path !== undefined) return text(`${status} page not found`, status)
  return json({ error: messageOf(error) }, status, retryHeaders(error))
}

/** Last line of a stream that fails after its headers. */
export const renderErrorFrame = (error: LlmError): string => jsonLine({ error: messageOf(error) })

/** Clients match on these texts. */
function messageOf({ code, message, details }: LlmError): string {
  const { inputTokens, contextSize, model, param = '' } = details
  if (details.emptyBody) return 'missing request body'
  if (code === 'not_found' && model !== undefined) return `model '${model}' not found`
  if (code === 'context_length' && inputTokens !== undefined)
    return `the prompt is longer than the context length currently available to the model: it has ${inputTokens} tokens, and the context holds ${contextSize}`
  const field = toField(param)
  return field === param ? message : `invalid ${field}: ${message}`
}

/** Drops the path within a schema, which the message contains. */
const toField = createFieldMapper([
  [/^format\.schema.*/s, 'format'],
  [/^(tools\[\d+\])\.parameters.*/s, '$1.function.parameters'],
])
