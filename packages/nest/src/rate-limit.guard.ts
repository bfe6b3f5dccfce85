/** Rate limits for routes of the host app. */
import { STATUS_CODES } from 'node:http'
import { createRouteLimit, type LlmError, type RateLimiter, type Reservation } from '@modelmount/core/limits'
import { type CanActivate, type ExecutionContext, HttpException, Inject, Injectable } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { LlmRequest } from './llm.request.ts'
import { type LlmResponse, rawResponse } from './llm.response.ts'
import { RATE_LIMIT, RATE_LIMITER, type RateLimitOptions } from './rate-limit.decorator.ts'

/** A request that `RateLimitGuard` admitted. Its route can settle the actual cost with `reservation`. */
export interface LimitedRequest extends LlmRequest {
  /** What was taken from the buckets. Absent if the guard did not limit the request. */
  reservation?: Reservation
}

/**
 * Limits the routes of `@UseGuards(RateLimitGuard)`, with the options of `@RateLimit({ … })`. The guard
 * counts by client address. A subclass can override `keyGenerator` to count by other keys. Behind a proxy,
 * tell Express which proxies to trust: `app.set('trust proxy', 1)`.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  readonly #limiter: RateLimiter
  readonly #reflector: Reflector
  readonly #limits = new Map<RateLimitOptions, ReturnType<typeof createRouteLimit<LlmRequest>>>()

  constructor(@Inject(RATE_LIMITER) limiter: RateLimiter, @Inject(Reflector) reflector: Reflector) {
    this.#limiter = limiter
    this.#reflector = reflector
    this.#refuseOldOverride()
  }

  /** Admits the request, or throws an `HttpException` with the status of the error, such as 429. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp()
    const [req, res] = [http.getRequest<LimitedRequest>(), rawResponse(http.getResponse<LlmResponse>())]
    const admission = await this.#limitOf(context)(req)
    for (const [name, value] of Object.entries(admission.headers)) res.setHeader(name, value)
    if ('refusal' in admission) throw this.refusal(admission.refusal)
    if (res.destroyed) admission.finish()
    else res.once('close', admission.finish)
    req.reservation = admission.reservation
    return true
  }

  /** Returns the exception for a rejected request. The response headers are already set. */
  protected refusal({ status, message }: LlmError): HttpException {
    return new HttpException({ statusCode: status, message, error: STATUS_CODES[status] }, status)
  }

  /**
   * Returns the rate limit key of a request, for routes without their own `keyGenerator`. `undefined` stands
   * for the client's address.
   */
  protected keyGenerator(_request: LlmRequest): ReturnType<NonNullable<RateLimitOptions['keyGenerator']>> {
    return undefined
  }

  #limitOf(context: ExecutionContext): ReturnType<typeof createRouteLimit<LlmRequest>> {
    const targets = [context.getHandler(), context.getClass()]
    const options =
      this.#reflector.getAllAndOverride<RateLimitOptions | undefined>(RATE_LIMIT, targets) ?? noOptions
    const known = this.#limits.get(options)
    if (known) return known
    // Checked again, because the fields of a subclass exist only after the constructor of this class.
    this.#refuseOldOverride()
    const isOverridden = this.keyGenerator !== RateLimitGuard.prototype.keyGenerator
    const keyGenerator = (request: LlmRequest) => this.keyGenerator(request)
    const limit = createRouteLimit<LlmRequest>(
      this.#limiter,
      { ...(isOverridden && { keyGenerator }), ...options },
      ({ ip }) => ip,
    )
    this.#limits.set(options, limit)
    return limit
  }

  /**
   * Throws if a subclass overrides `keyGenerator` under its old name, `subject`. Otherwise such a guard would
   * count by address.
   */
  #refuseOldOverride(): void {
    if ('subject' in this && typeof this.subject === 'function')
      throw new TypeError(`Expected ${this.constructor.name} to override keyGenerator(), got subject()`)
  }
}

const noOptions: RateLimitOptions = {}
