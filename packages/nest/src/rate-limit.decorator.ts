/** How a route says what it costs, and how the limiter of an app is provided. */
import { checkRouteLimitOptions, type RouteLimitOptions } from '@modelmount/core/limits'
import { type CustomDecorator, SetMetadata } from '@nestjs/common'
import type { LlmRequest } from './llm.request.ts'

export type RateLimitOptions = RouteLimitOptions<LlmRequest>

/** The token of the limiter: `{ provide: RATE_LIMITER, useFactory: () => createRateLimiter(…) }`. */
export const RATE_LIMITER = Symbol('RateLimiter')

export const RATE_LIMIT = Symbol('RateLimitOptions')

/** On a route or a controller: what its calls cost, whom, and within which limits. The one on the route counts. Throws a `TypeError` for what is wrong. */
export const RateLimit = (options: RateLimitOptions): CustomDecorator<symbol> => {
  checkRouteLimitOptions(options)
  return SetMetadata(RATE_LIMIT, options)
}
