/** Limits a route of the host app, for any framework. */
import { LlmError } from '../errors.ts'
import { addressKey } from './address.ts'
import { retryHeaders, routeLimitHeaders } from './headers.ts'
import type { Cost, Limits, RateLimiter, Reservation, WindowLimit } from './limits.ts'
import { keyPrefix, keysToSubjects } from './rate-limit-key.ts'
import { createReservation } from './reservation.ts'
import { checkRouteLimitOptions, limitsOf, type RouteLimitOptions } from './route-limit-options.ts'

/** The decision about a request. The adapter sets the headers of admitted and of rejected requests. */
export type Admission =
  | {
      /** Rate limit headers of the response, by name. */
      readonly headers: Readonly<Record<string, string>>
      /** What was taken from the buckets. A route may settle the actual cost. */
      readonly reservation: Reservation
      /**
       * The adapter calls `finish` when the response is over. If the route has not settled its reservation,
       * `finish` settles the reserved cost.
       */
      finish(): void
    }
  | { readonly headers: Readonly<Record<string, string>>; readonly refusal: LlmError }

/**
 * Returns a function that admits or rejects a request. `createRouteLimit` throws a `TypeError` for invalid
 * options, and if no limit can ever apply.
 *
 * @param addressOf returns the client's address as the framework reports it. The framework knows which
 *   proxies to trust
 */
export function createRouteLimit<Request>(
  limiter: RateLimiter,
  options: RouteLimitOptions<Request>,
  addressOf: (request: Request) => string | undefined,
): (request: Request) => Promise<Admission> {
  // Without `await`, `createRateLimiter()` returns a promise: the likeliest mistake.
  if (typeof limiter?.reserve !== 'function')
    throw new TypeError('Expected a limiter, such as `await createRateLimiter()`')
  checkRouteLimitOptions(options)
  const { keyGenerator, skip, requests = 1, tokens = 0, passOnStoreError = false, ipv6Subnet } = options
  const limits = limitsOf(options)
  if (!keyGenerator && hasNoLimits(limits ?? limiter.limits))
    throw new TypeError(
      'Expected `limits`: neither the route nor its limiter has any, so every request would be admitted',
    )
  const prefix = keyPrefix(options.name, limits)

  const subjectsOf = async (request: Request) => {
    const ofAddress = () => addressKey(addressOf(request), ipv6Subnet)
    if (!keyGenerator) return [{ id: prefix + ofAddress(), limits }]
    return keysToSubjects(await keyGenerator(request), { prefix, limits, addressKey: ofAddress })
  }

  /** Whether to admit a request that the limiter cannot count. A function that fails admits none. */
  const passes = async (cause: unknown, request: Request): Promise<boolean> => {
    if (typeof passOnStoreError === 'boolean') return passOnStoreError
    try {
      return (await passOnStoreError(cause, request)) === true
    } catch {
      return false
    }
  }

  return async (request) => {
    try {
      if (skip && (await skip(request))) return admit(createUnlimitedReservation(freeOfCharge))
      const subjects = await subjectsOf(request)
      const cost: Cost = {
        requests: typeof requests === 'number' ? requests : await requests(request),
        tokens: typeof tokens === 'number' ? tokens : await tokens(request),
      }
      const reservation = await limiter.reserve(subjects, cost).catch(async (cause: unknown) => {
        if (isRefusal(cause) || cause instanceof TypeError) throw cause
        if (await passes(cause, request)) return createUnlimitedReservation(cost)
        throw limitsUnavailable(cause)
      })
      return admit(reservation)
    } catch (cause) {
      if (!LlmError.is(cause) || cause.code === 'internal') throw cause
      const limits = cause.details.limits ?? []
      return {
        headers: { ...routeLimitHeaders(limits), ...retryHeaders(cause) },
        refusal: cause,
      }
    }
  }
}

/** Whether the limiter works and rejects the request. An `unavailable` error means that its database fails. */
const isRefusal = (cause: unknown): boolean => LlmError.is(cause) && cause.code !== 'unavailable'

/** False if `limits` is undefined, because a limiter need not report its limits. */
const hasNoLimits = (limits: Limits | WindowLimit | undefined): boolean =>
  limits !== undefined && Object.values(limits).every((limit) => limit === undefined)

const admit = (reservation: Reservation): Admission => ({
  headers: routeLimitHeaders(reservation.limits),
  reservation,
  // The response is over, so no client can get the error. The limiter retries the settlement later.
  finish: () => void reservation.settle().catch(() => {}),
})

const freeOfCharge: Cost = { requests: 0, tokens: 0 }

const createUnlimitedReservation = (cost: Cost): Reservation => createReservation([], cost, async () => {})

const limitsUnavailable = (cause: unknown): LlmError =>
  new LlmError(
    'overloaded',
    'The limits of this route cannot be looked up at the moment. Try again in 5 s.',
    { retryAfterMs: 5_000 },
    { cause },
  )
