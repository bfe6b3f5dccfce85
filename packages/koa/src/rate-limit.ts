/** Rate limits for routes of the host app. */
import {
  createRouteLimit,
  type LlmError,
  type RateLimiter,
  type RouteLimitOptions,
} from '@modelmount/core/limits'
import type { Context, Middleware } from 'koa'

/** Options of `rateLimit()` for routes of Koa. Functions get the context of Koa. */
export interface RateLimitOptions extends RouteLimitOptions<Context> {
  /**
   * Answers a rejected request. The rate limit headers are already set.
   *
   * @default sends the status of the error, such as 429, and its message as JSON
   */
  readonly handler?: ((ctx: Context, error: LlmError) => void | Promise<void>) | undefined
}

/**
 * Limits the requests of each client address, or of each key that `keyGenerator` returns. Behind one proxy,
 * set `app.proxy = true` and `app.maxIpsCount = 1`. Without the count, Koa trusts addresses that clients
 * themselves write into `x-forwarded-for`. A route can settle its actual cost with `ctx.state.reservation`, a
 * `Reservation`.
 */
export function rateLimit(limiter: RateLimiter, options: RateLimitOptions = {}): Middleware {
  const { handler = reject, ...rest } = options
  const admit = createRouteLimit<Context>(limiter, rest, (ctx) => ctx.ip)

  return async (ctx, next) => {
    const admission = await admit(ctx)
    ctx.set(admission.headers)
    if ('refusal' in admission) return handler(ctx, admission.refusal)
    // The client disconnected meanwhile.
    if (ctx.res.destroyed) return admission.finish()
    ctx.res.once('close', admission.finish)
    ctx.state.reservation = admission.reservation
    return next()
  }
}

const reject: NonNullable<RateLimitOptions['handler']> = (ctx, { status, message }) => {
  ctx.status = status
  ctx.body = { error: message }
}
