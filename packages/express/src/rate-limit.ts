/** Limits for routes of the app. */
import {
  createRouteLimit,
  type LlmError,
  type RateLimiter,
  type RouteLimitOptions,
} from '@modelmount/core/limits'
import type { NextFunction, Request, RequestHandler, Response } from 'express'

export interface RateLimitOptions extends RouteLimitOptions<Request> {
  /** Answers who is refused. The headers are set. @default the error's status, such as 429, and its message as JSON */
  readonly handler?: ((req: Request, res: Response, next: NextFunction, error: LlmError) => void) | undefined
}

/**
 * Lets in what the limiter lets in, by address unless `subject` says who calls. Behind a proxy the app has to say which one it trusts:
 * `app.set('trust proxy', 1)`. A route finds its `Reservation` in `res.locals.reservation`, to settle what it really cost.
 */
export function rateLimit(limiter: RateLimiter, options: RateLimitOptions = {}): RequestHandler {
  const { handler = refuse, ...rest } = options
  const admit = createRouteLimit<Request>(limiter, rest, (req) => req.ip)

  return async (req, res, next) => {
    try {
      const admission = await admit(req)
      for (const name in admission.headers) res.setHeader(name, admission.headers[name] as string)
      if ('refusal' in admission) return handler(req, res, next, admission.refusal)
      // Who has left meanwhile is answered by nobody.
      if (res.destroyed) return admission.finish()
      res.once('close', admission.finish)
      res.locals.reservation = admission.reservation
    } catch (error) {
      return next(error)
    }
    next()
  }
}

const refuse: NonNullable<RateLimitOptions['handler']> = (_req, res, _next, { status, message }) =>
  void res.status(status).json({ error: message })
