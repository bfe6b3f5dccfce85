/** A limiter on routes of the app: what every adapter does with a call, in no framework's words. */
import { LlmError } from '../errors.ts'
import { addressSubject } from './address.ts'
import { checkCost, checkLimits } from './demand.ts'
import { limitHeaders, retryHeaders } from './headers.ts'
import type { Cost, Limits, RateLimiter, Reservation, Subject } from './limits.ts'

export interface RouteLimitOptions<Request> {
  /**
   * Who comes under the limits: a text of the app's own making, such as `user:42`, or several subjects, of which each has to let
   * the call in. An empty list is not limited.
   *
   * @default the address of the client; also where it says nobody
   */
  subject?(request: Request): SubjectAnswer | Promise<SubjectAnswer>
  /** Of subjects that bring none of their own. @default those of the limiter */
  readonly limits?: Limits | undefined
  /** What a call takes of the requests per minute. @default 1 */
  readonly requests?: number | ((request: Request) => number | Promise<number>) | undefined
  /**
   * What a call takes of the tokens per minute, in any unit of the app's own. What it really took, the route says by `settle` of its
   * reservation.
   *
   * @default 0
   */
  readonly tokens?: number | ((request: Request) => number | Promise<number>) | undefined
}

type SubjectAnswer = string | Subject | readonly (string | Subject)[] | undefined

/** Headers are for either answer. */
export type Admission =
  | {
      readonly headers: Readonly<Record<string, string>>
      readonly reservation: Reservation
      /** To be called when the answer is over: what nobody has settled cost what was expected. */
      finish(): void
    }
  | { readonly headers: Readonly<Record<string, string>>; readonly refusal: LlmError }

/** @param addressOf as the framework sees it, which knows which proxies to believe */
export function createRouteLimit<Request>(
  limiter: RateLimiter,
  options: RouteLimitOptions<Request>,
  addressOf: (request: Request) => string | undefined,
): (request: Request) => Promise<Admission> {
  const { limits, subject, requests = 1, tokens = 0 } = options
  checkOptions(limiter, options)

  const subjectsOf = async (request: Request): Promise<readonly Subject[]> => {
    const found = (await subject?.(request)) ?? addressSubject(addressOf(request))
    return [found].flat().map((one) => (typeof one === 'string' ? { id: one, limits } : { limits, ...one }))
  }

  return async (request) => {
    const subjects = subject
      ? await subjectsOf(request)
      : [{ id: addressSubject(addressOf(request)), limits }]
    const cost: Cost = {
      requests: typeof requests === 'number' ? requests : await requests(request),
      tokens: typeof tokens === 'number' ? tokens : await tokens(request),
    }
    try {
      const reservation = await limiter.reserve(subjects, cost)
      return {
        headers: limitHeaders(reservation.limits),
        reservation,
        // Nobody is there to be told of a database that is away; a place among those that run is given back by its lease.
        finish: () => void reservation.settle(cost).catch(() => {}),
      }
    } catch (cause) {
      const refusal = LlmError.from(cause)
      if (refusal.code !== 'rate_limit') throw cause
      return { headers: { ...limitHeaders(refusal.details.limits ?? []), ...retryHeaders(refusal) }, refusal }
    }
  }
}

function checkOptions<Request>(limiter: RateLimiter, options: RouteLimitOptions<Request>): void {
  const { limits = {}, requests, tokens } = options
  // What is passed on without `await` is the likeliest mistake.
  if (typeof limiter?.reserve !== 'function')
    throw new TypeError('Expected a limiter, such as `await createRateLimiter()`')
  checkLimits(limits)
  checkCost({
    requests: typeof requests === 'number' ? requests : 0,
    tokens: typeof tokens === 'number' ? tokens : 0,
  })
}
