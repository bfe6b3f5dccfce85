/** Stores the rate limit options of a route as Nest metadata. */
import { checkRouteLimitOptions, type RouteLimitOptions } from '@modelmount/core/limits'
import { type CustomDecorator, SetMetadata } from '@nestjs/common'
import type { LlmRequest } from './llm.request.ts'

/** Options of `@RateLimit()`. Functions get the request of Express or Fastify. */
export type RateLimitOptions = RouteLimitOptions<LlmRequest>

/** The injection token of the limiter, which `RateLimitModule` provides. */
export const RATE_LIMITER = Symbol('RateLimiter')

export const RATE_LIMIT = Symbol('RateLimitOptions')

/**
 * Sets the cost, the rate limit key and the limits of a route or of a controller. The options of a route
 * replace all options of its controller.
 */
export const RateLimit = (options: RateLimitOptions): CustomDecorator<symbol> => {
  checkRouteLimitOptions(options)
  return SetMetadata(RATE_LIMIT, options)
}
