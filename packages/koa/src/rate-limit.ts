/** Limits for routes of the app. */
import {
  createRouteLimit,
  type LlmError,
  type RateLimiter,
  type RouteLimitOptions,
} from '@modelmount/core/limits'
import type { Context, Middleware } from 'koa'

export interface RateLimitOptions extends RouteLimitOptions<Context> {
  /** Answers who is refused. The headers are set. @default the error's status, such as 429, and its message as JSON */
  readonly handler?: ((ctx: Context, error: LlmError) => void | Promise<void>) | undefined
}

/**
 * Lets in what the limiter lets in, by address unless `subject` says who calls. Behind a proxy the app has to say that it trusts one,
 * and how many there are: `app.proxy = true; app.maxIpsCount = 1`. Without the count Koa believes what the client itself has written into
 * `x-forwarded-for`. A route finds its `Reservation` in `ctx.state.reservation`, to settle what it really cost.
 */
export function rateLimit(limiter: RateLimiter, options: RateLimitOptions = {}): Middleware {
  const { handler = refuse, ...rest } = options
  const admit = createRouteLimit<Context>(limiter, rest, (ctx) => ctx.ip)

  return async (ctx, next) => {
    const admission = await admit(ctx)
    ctx.set(admission.headers)
    if ('refusal' in admission) return handler(ctx, admission.refusal)
    // Who has left meanwhile is answered by nobody.
    if (ctx.res.destroyed) return admission.finish()
    ctx.res.once('close', admission.finish)
    ctx.state.reservation = admission.reservation
    return next()
  }
}

const refuse: NonNullable<RateLimitOptions['handler']> = (ctx, { status, message }) => {
  ctx.status = status
  ctx.body = { error: message }
}
