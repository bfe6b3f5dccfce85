/** Rate limits for routes of the host app. */
import {
  createRouteLimit,
  type LlmError,
  type RateLimiter,
  type RouteLimitOptions,
} from '@modelmount/core/limits'
import type { NextFunction, Request, RequestHandler, Response } from 'express'

/** Options of `rateLimit()` for routes of Express. Functions get the request of Express. */
export interface RateLimitOptions extends RouteLimitOptions<Request> {
  /**
   * Answers a rejected request. The rate limit headers are already set.
   *
   * @default sends the status of the error, such as 429, and its message as JSON
   */
  readonly handler?:
    | ((req: Request, res: Response, next: NextFunction, error: LlmError) => void | Promise<void>)
    | undefined
}

/**
 * Limits the requests of each client address, or of each key that `keyGenerator` returns. Behind a proxy,
 * tell Express which proxies to trust: `app.set('trust proxy', 1)`. A route can settle its actual cost with
 * `res.locals.reservation`, a `Reservation`.
 */
export function rateLimit(limiter: RateLimiter, options: RateLimitOptions = {}): RequestHandler {
  const { handler = reject, ...rest } = options
  const admit = createRouteLimit<Request>(limiter, rest, (req) => req.ip)

  return async (req, res, next) => {
    try {
      const admission = await admit(req)
      for (const name in admission.headers) res.setHeader(name, admission.headers[name] as string)
      // Awaited, since Express 4 ignores the promise of a middleware.
      if ('refusal' in admission) return await handler(req, res, next, admission.refusal)
      // The client disconnected meanwhile.
      if (res.destroyed) return admission.finish()
      res.once('close', admission.finish)
      res.locals.reservation = admission.reservation
    } catch (error) {
      return next(error)
    }
    next()
  }
}

const reject: NonNullable<RateLimitOptions['handler']> = (_req, res, _next, { status, message }) =>
  void res.status(status).json({ error: message })
