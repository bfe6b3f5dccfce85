/** Renders an `LlmError` as OpenAI's error object, with the codes that SDKs and proxies match on. */
import type { Issue, LlmError, LlmErrorCode } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { dataFrame } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'
import type { IssueFormatter } from '../parse.ts'

export function renderError(error: LlmError): HttpResponse {
  const [status] = kinds[error.code]
  return json(toEnvelope(error), status, retryHeaders(error))
}

/** Formats an invalid field as an error message. */
export const formatIssue: IssueFormatter = ({ param, issue, reason }) => {
  if (param === '') return 'The request body has to be a JSON object.'
  return issue === 'missing' ? `Missing required parameter: '${param}'.` : `Invalid '${param}': ${reason}`
}

/** Last frame of a stream that fails after its headers are sent. */
export const renderErrorFrame = (error: LlmError): string => dataFrame(JSON.stringify(toEnvelope(error)))

/** Error object for the Responses API, in a stream that fails after its headers are sent. */
export function toResponseError(error: LlmError): { readonly code: string; readonly message: string } {
  const [status] = kinds[error.code]
  return {
    code: codeOf(error) ?? (status < 500 ? 'invalid_prompt' : 'server_error'),
    message: messageOf(error),
  }
}

function toEnvelope(error: LlmError): object {
  const [, type] = kinds[error.code]
  const { param = null, exceeded } = error.details
  return {
    error: {
      message: messageOf(error),
      type: exceeded ?? type,
      param: isAboutModel(error) ? null : param,
      code: codeOf(error),
    },
  }
}

function codeOf(error: LlmError): string | null {
  const { issue, param } = error.details
  if (isAboutModel(error)) return 'model_not_found'
  if (param === 'previous_response_id' && issue === 'value') return 'previous_response_not_found'
  const [, , code] = kinds[error.code]
  return issue ? issueCodes[issue] : code
}

const isAboutModel = ({ code, details }: LlmError): boolean =>
  code === 'not_found' && details.param === 'model'

/** Proxies and agents match on these texts. */
function messageOf({ code, message, details: { inputTokens, contextSize } }: LlmError): string {
  return code === 'context_length' && inputTokens !== undefined
    ? `This model's maximum context length is ${contextSize} tokens. However, your messages resulted in ${inputTokens} tokens. Please reduce the length of the messages.`
    : message
}

const kinds = {
  invalid_request: [400, 'invalid_request_error', null],
  context_length: [400, 'invalid_request_error', 'context_length_exceeded'],
  authentication: [401, 'invalid_request_error', 'invalid_api_key'],
  permission: [403, 'invalid_request_error', null],
  quota: [429, 'insufficient_quota', 'insufficient_quota'],
  not_found: [404, 'invalid_request_error', null],
  timeout: [408, 'invalid_request_error', 'request_timeout'],
  conflict: [409, 'invalid_request_error', null],
  too_large: [413, 'invalid_request_error', 'request_too_large'],
  rate_limit: [429, 'requests', 'rate_limit_exceeded'],
  overloaded: [503, 'server_error', 'server_overloaded'],
  unavailable: [503, 'server_error', 'service_unavailable'],
  upstream: [500, 'server_error', null],
  invalid_output: [500, 'server_error', null],
  internal: [500, 'server_error', null],
  method_not_allowed: [405, 'invalid_request_error', 'method_not_supported'],
} as const satisfies Record<LlmErrorCode, readonly [status: number, type: string, code: string | null]>

const issueCodes = {
  missing: 'missing_required_parameter',
  type: 'invalid_type',
  value: 'invalid_value',
  empty: 'empty_array',
  array_too_long: 'array_above_max_length',
  string_too_long: 'string_above_max_length',
  decimal_too_big: 'decimal_above_max_value',
  decimal_too_small: 'decimal_below_min_value',
  integer_too_big: 'integer_above_max_value',
  integer_too_small: 'integer_below_min_value',
  unsupported: 'unsupported_parameter',
} as const satisfies Record<Issue, string>
