/** `LlmError` as the admin API says it. */
import type { LlmError, LlmErrorCode } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { retryHeaders } from '../../limits/headers.ts'

export const renderError = (error: LlmError): HttpResponse =>
  json(envelope(error), statuses[error.code], retryHeaders(error))

/** No answer of it is a stream; a dialect has to say it all the same. */
export const renderErrorFrame = (error: LlmError): string => JSON.stringify(envelope(error))

const envelope = ({ code, message, details: { param } }: LlmError): object => ({
  error: { code, message, ...(param && { param }) },
})

const statuses = {
  invalid_request: 400,
  context_length: 400,
  authentication: 401,
  permission: 403,
  quota: 429,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  rate_limit: 429,
  overloaded: 503,
  upstream: 500,
  internal: 500,
  method_not_allowed: 405,
} as const satisfies Record<LlmErrorCode, number>
