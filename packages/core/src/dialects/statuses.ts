/** The usual status of each error, for APIs whose clients look for no other. */
import type { LlmErrorCode } from '../errors.ts'

export const statuses = {
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
