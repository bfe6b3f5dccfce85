/** How a route says what it costs, and how the limiter of an app is provided. */
import type { RouteLimitOptions } from '@modelmount/core/limits'
import { type CustomDecorator, SetMetadata } from '@nestjs/common'
import type { LlmRequest } from './llm.request.ts'

export type RateLimitOptions = RouteLimitOptions<LlmRequest>

/** The token of the limiter: `{ provide: RATE_LIMITER, useFactory: () => createRateLimiter(…) }`. */
export const RATE_LIMITER = Symbol('RateLimiter')

export const RATE_LIMIT = Symbol('RateLimitOptions')

/** On a route or a controller: what its calls cost, whom, and within which limits. The one on the route counts. */
export const RateLimit = (options: RateLimitOptions): CustomDecorator<symbol> =>
  SetMetadata(RATE_LIMIT, options)
