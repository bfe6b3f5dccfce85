/** The entry point `@modelmount/core/limits`: limits for routes of the host app. Loads no engine, and a database only when one is named. */

export { LlmError } from '../errors.ts'
export type { DatabaseLocation } from '../storage/open.ts'
export type { PostgresPool } from '../storage/postgres.ts'
export { createRateLimiter, type RateLimiterOptions } from './create-rate-limiter.ts'
export type {
  CallerLimits,
  ClosableRateLimiter,
  Cost,
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
