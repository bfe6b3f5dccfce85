/** Limits for routes of the app. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { createRouteLimit, type LlmError, type RateLimiter, type Reservation } from '@modelmount/core/limits'
import { type CanActivate, type ExecutionContext, HttpException, Inject, Injectable } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { LlmRequest } from './llm.request.ts'
import { RATE_LIMIT, RATE_LIMITER, type RateLimitOptions } from './rate-limit.decorator.ts'

/** What a route finds in its request, to settle what it really cost. */
export interface LimitedRequest extends LlmRequest {
  reservation?: Reservation
}

/**
 * `@UseGuards(RateLimitGuard)`, beside `@RateLimit({ … })` where a call costs more than one request. Whom it costs is the address of the
 * client, or what a guard of the app's own says that extends this one. Behind a proxy the app has to say which one it trusts:
 * `app.set('trust proxy', 1)`.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  readonly #limiter: RateLimiter
  readonly #reflector: Reflector
  readonly #limits = new Map<RateLimitOptions, ReturnType<typeof createRouteLimit<LlmRequest>>>()

  constructor(@Inject(RATE_LIMITER) limiter: RateLimiter, @Inject(Reflector) reflector: Reflector) {
    this.#limiter = limiter
    this.#reflector = reflector
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp()
    const [req, res] = [http.getRequest<LimitedRequest>(), http.getResponse<ServerResponse>()]
    const admission = await this.#limitOf(context)(req)
    for (const [name, value] of Object.entries(admission.headers)) res.setHeader(name, value)
    if ('refusal' in admission) throw this.refusal(admission.refusal)
    if (res.destroyed) admission.finish()
    else res.once('close', admission.finish)
    req.reservation = admission.reservation
    return true
  }

  /** What is thrown at who is refused. The headers are set. */
  protected refusal({ status, message }: LlmError): HttpException {
    return new HttpException({ statusCode: status, message, error: STATUS_CODES[status] }, status)
  }

  /** Who comes under the limits, where the route does not say. Nobody: the address of the client. */
  protected subject(_request: LlmRequest): ReturnType<NonNullable<RateLimitOptions['subject']>> {
    return undefined
  }

  #limitOf(context: ExecutionContext): ReturnType<typeof createRouteLimit<LlmRequest>> {
    const places = [context.getHandler(), context.getClass()]
    const options =
      this.#reflector.getAllAndOverride<RateLimitOptions | undefined>(RATE_LIMIT, places) ?? none
    const known = this.#limits.get(options)
    if (known) return known
    const subject = (request: LlmRequest) => this.subject(request)
    const said = this.subject === RateLimitGuard.prototype.subject ? {} : { subject }
    const made = createRouteLimit<LlmRequest>(this.#limiter, { ...said, ...options }, ({ ip }) => ip)
    this.#limits.set(options, made)
    return made
  }
}

const none: RateLimitOptions = {}
