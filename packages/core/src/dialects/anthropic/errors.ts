/** Renders an `LlmError` as Anthropic's error object. Shape: Anthropic API reference, "Errors". */
import { describeAlias, type Issue, type LlmError, type LlmErrorCode } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { eventFrame } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'
import { createFieldMapper, upstreamMappings } from '../fields.ts'
import type { FieldIssue, IssueFormatter } from '../parse.ts'

export function renderError(error: LlmError, requestId: string): HttpResponse {
  const [status] = kinds[error.code]
  return json(toEnvelope(error, requestId), status, retryHeaders(error))
}

/** Last frame of a stream that fails after its headers are sent. */
export const renderErrorFrame = (error: LlmError, requestId: string): string =>
  eventFrame('error', JSON.stringify(toEnvelope(error, requestId)))

/** Formats a field error like Anthropic's API: `max_tokens: Field required`. */
export const formatIssue: IssueFormatter = (problem) => {
  if (problem.param !== '') return `${toFieldPath(problem.param)}: ${issueMessages[problem.issue](problem)}`
  return problem.issue === 'value' ? problem.reason : 'The request body has to be a JSON object.'
}

/**
 * Formats a field path like Anthropic's API, which inserts the type of a tool or of `thinking`:
 * `tools.0.custom.name`.
 */
const toFieldPath = (param: string): string =>
  param
    .replaceAll(/\[(\d+)\]/g, '.$1')
    .replace(/^tools\.\d+\.(?=name|description|input_schema|strict)/, '$&custom.')
    .replace(/^thinking\.budget/, 'thinking.enabled.budget')

function toEnvelope(error: LlmError, requestId: string): object {
  const [, type] = kinds[error.code]
  return {
    type: 'error',
    error: { type, message: messageOf(error), ...detailsOf(error) },
    request_id: requestId,
  }
}

/** Clients match on these codes. After `thread_unsupported_request`, they send the whole conversation. */
const detailsOf = ({ code, details: { param, issue } }: LlmError): object => {
  if (code === 'quota') return { details: { error_code: 'api_key_spend_limit_reached' } }
  return param === 'thread' && issue === 'unsupported'
    ? { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } }
    : {}
}

/** Agents match on these texts, for instance to shorten their conversation. */
function messageOf({ code, message, details }: LlmError): string {
  const { inputTokens, contextSize, model, param = '' } = details
  if (code === 'context_length') return `prompt is too long: ${inputTokens} tokens > ${contextSize} maximum`
  if (code === 'not_found' && model !== undefined) return `model: ${model}${describeAlias(details.alias)}`
  if (code === 'quota') return `You have reached your specified API usage limits. ${message}`
  const field = toField(param)
  return field === param ? message : `${field}: ${message}`
}

/**
 * Maps the engine's field names to the field names of Anthropic's API. Drops the path within a JSON Schema,
 * since the message contains this path.
 */
const toField = createFieldMapper([
  [/^format\.schema.*/s, 'output_config.format.schema'],
  [/^tools\[(\d+)\]\.parameters.*/s, 'tools.$1.custom.input_schema'],
  [/^tools\[(\d+)\]\.strict$/, 'tools.$1.custom.strict'],
  [/^maxTokens$/, 'max_tokens'],
  [/^templateOptions\.reasoning_effort$/, 'output_config.effort'],
  [/^toolChoice\.parallel$/, 'tool_choice.disable_parallel_tool_use'],
  ...upstreamMappings(),
  // Images, whose paths end with `image`, because those of fields are in the message already.
  [/^messages\[(\d+)\]\.content\[(\d+)\]\.image$/, 'messages.$1.content.$2'],
  [/^messages\[(\d+)\]\.content\[(\d+)\]\.content\[(\d+)\]\.image$/, 'messages.$1.content.$2.content.$3'],
])

const kinds = {
  invalid_request: [400, 'invalid_request_error'],
  context_length: [400, 'invalid_request_error'],
  authentication: [401, 'authentication_error'],
  permission: [403, 'permission_error'],
  // The status is not 429, since clients would then retry in vain.
  quota: [400, 'invalid_request_error'],
  not_found: [404, 'not_found_error'],
  timeout: [408, 'timeout_error'],
  conflict: [409, 'conflict_error'],
  too_large: [413, 'request_too_large'],
  rate_limit: [429, 'rate_limit_error'],
  overloaded: [529, 'overloaded_error'],
  unavailable: [503, 'api_error'],
  upstream: [500, 'api_error'],
  invalid_output: [500, 'api_error'],
  internal: [500, 'api_error'],
  method_not_allowed: [405, 'invalid_request_error'],
} as const satisfies Record<LlmErrorCode, readonly [status: number, type: string]>

const toReason = ({ reason }: FieldIssue): string => reason
const tooBig = ({ limit }: FieldIssue): string => `Input should be less than or equal to ${limit}`
const tooSmall = ({ limit }: FieldIssue): string => `Input should be greater than or equal to ${limit}`

const issueMessages = {
  missing: () => 'Field required',
  type: ({ expected = '', reason }) =>
    expected in types ? `Input should be a valid ${types[expected as keyof typeof types]}` : reason,
  value: toReason,
  empty: toReason,
  array_too_long: ({ limit }) => `List should have at most ${limit} items`,
  string_too_long: ({ limit }) => `String should have at most ${limit} characters`,
  decimal_too_big: tooBig,
  decimal_too_small: tooSmall,
  integer_too_big: tooBig,
  integer_too_small: tooSmall,
  unsupported: toReason,
} as const satisfies Record<Issue, IssueFormatter>

const types = {
  string: 'string',
  number: 'number',
  int: 'integer',
  boolean: 'boolean',
  array: 'list',
  object: 'dictionary',
} as const
