/**
 * The entry point `@modelmount/core/limits`: rate limits for routes of the host app. It loads no engine. It
 * loads a database driver only if the option `database` is set.
 */

export { LlmError } from '../errors.ts'
export type { DatabaseLocation } from '../storage/open.ts'
export type { PostgresPool } from '../storage/postgres.ts'
export { addressKey } from './address.ts'
export { createRateLimiter, type RateLimiterOptions } from './create-rate-limiter.ts'
export type {
  CallerLimits,
  ClosableRateLimiter,
  Cost,
  EndUserLimits,
  InferenceLimits,
  LimiterStore,
  LimitStatus,
  Limits,
  RateLimiter,
  Reservation,
  Subject,
  WindowLimit,
  WithHeaders,
} from './limits.ts'
export { type Admission, createRouteLimit } from './route-limit.ts'
export { checkRouteLimitOptions, type RouteLimitOptions } from './route-limit-options.ts'
