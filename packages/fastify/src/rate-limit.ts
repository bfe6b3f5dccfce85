/** Rate limits for routes of the host app. */
import {
  createRouteLimit,
  type LlmError,
  type RateLimiter,
  type Reservation,
  type RouteLimitOptions,
} from '@modelmount/core/limits'
import type { FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the hook of `rateLimit()`. Settles the actual cost of the request. */
    reservation?: Reservation
  }
}

/** Options of `rateLimit()` for routes of Fastify. Functions get the request of Fastify. */
export interface RateLimitOptions extends RouteLimitOptions<FastifyRequest> {
  /**
   * Answers a rejected request. The rate limit headers are already set.
   *
   * @default sends the status of the error, such as 429, and its message as JSON
   */
  readonly handler?:
    | ((request: FastifyRequest, reply: FastifyReply, error: LlmError) => unknown | Promise<unknown>)
    | undefined
}

/**
 * Creates a hook that limits the requests of each client address, or of each key that `keyGenerator` returns. Use it
 * as `onRequest`, or as `preHandler` if the options need the body or the user. Behind a proxy, tell Fastify which
 * proxies to trust: `fastify({ trustProxy: '10.0.0.1' })`. A route can settle its actual cost with `request.reservation`.
 */
export function rateLimit(
  limiter: RateLimiter,
  options: RateLimitOptions = {},
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const { handler = reject, ...rest } = options
  const admit = createRouteLimit<FastifyRequest>(limiter, rest, ({ ip }) => ip)

  return async (request, reply) => {
    const admission = await admit(request)
    reply.headers(admission.headers)
    if ('refusal' in admission) {
      await handler(request, reply, admission.refusal)
      return
    }
    if (reply.raw.destroyed) {
      // The client disconnected meanwhile: no handler needs to run.
      reply.hijack()
      return admission.finish()
    }
    reply.raw.once('close', admission.finish)
    if (admission.reservation) request.reservation = admission.reservation
  }
}

const reject: NonNullable<RateLimitOptions['handler']> = (_request, reply, { status, message }) =>
  reply.code(status).send({ error: message })
