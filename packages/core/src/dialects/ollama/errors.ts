/** Renders an `LlmError` like Ollama, as an object with one text. Shape: Ollama API reference, "Errors". */
import { describeAlias, describeDeniedContext, type LlmError, statusOf } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { empty, json, text } from '../../http/respond.ts'
import { jsonLine } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'
import { createFieldMapper, upstreamMappings } from '../fields.ts'

export function renderError(error: LlmError): HttpResponse {
  const status = statusOf(error.code)
  if (error.details.page) return empty(status)
  // Ollama's router responds with plain text.
  if (error.code === 'method_not_allowed') return text(`${status} method not allowed`, status)
  if (error.details.path !== undefined) return text(`${status} page not found`, status)
  return json({ error: messageOf(error) }, status, retryHeaders(error))
}

/** Last line of a stream that fails after its headers are sent. */
export const renderErrorFrame = (error: LlmError): string => jsonLine({ error: messageOf(error) })

/** Clients match on these texts. */
function messageOf({ code, message, details }: LlmError): string {
  const { inputTokens, contextSize, requestedContextSize, model, param = '' } = details
  if (details.emptyBody) return 'missing request body'
  if (code === 'not_found' && model !== undefined)
    return `model '${model}' not found${describeAlias(details.alias)}`
  if (code === 'context_length' && inputTokens !== undefined)
    return appendDenial(
      `the prompt is longer than the context length currently available to the model: it has ${inputTokens} tokens, and the context holds ${contextSize}`,
      requestedContextSize,
    )
  if (code === 'permission' && requestedContextSize !== undefined)
    return describeDeniedContext('num_ctx', requestedContextSize)
  const field = toField(param)
  return field === param ? message : `invalid ${field}: ${message}`
}

/** Appends why the caller did not get the context size that it asked for. */
export const appendDenial = (message: string, requestedContextSize: number | undefined): string =>
  requestedContextSize === undefined
    ? message
    : `${message}. ${describeDeniedContext('num_ctx', requestedContextSize)}`

/**
 * Maps the engine's field names to the field names of Ollama's API. Drops the path within a JSON Schema,
 * since the message contains this path.
 */
const toField = createFieldMapper([
  [/^format\.schema.*/s, 'format'],
  [/^(tools\[\d+\])\.parameters.*/s, '$1.function.parameters'],
  [/^maxTokens$/, 'options.num_predict'],
  [/^templateOptions\.reasoning_effort$/, 'think'],
  ...upstreamMappings('options.'),
  [/(?<=^(?:messages\[\d+\]\.)?images)\[\d+\]$/, ''],
])
