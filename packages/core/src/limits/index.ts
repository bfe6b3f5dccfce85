/** The `@modelmount/core/limits` door: limits for routes of the app. Loads no engine, and a database only where one is named. */

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
  WithHeaders,
} from './limits.ts'
export {
  type Admission,
  checkRouteLimitOptions,
  createRouteLimit,
  type RouteLimitOptions,
} from './route-limit.ts'
