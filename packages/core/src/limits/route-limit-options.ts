/** Defines and checks the options of a route limit. */
import { checkKeys, describeValue } from '../options/check.ts'
import { minuteMs } from './bucket.ts'
import { checkCost, checkLimits, checkRange, checkWindowLimit } from './demand.ts'
import type { Limits, WindowLimit } from './limits.ts'
import type { RateLimitKey } from './rate-limit-key.ts'

/** Which requests of a route count against which limits. */
export interface RouteLimitOptions<Request> {
  /**
   * Returns the rate limit key of a request: a text that the app chooses, such as `user:42`, a number, or
   * `{ id, limits }`. For `undefined`, `null` and `''`, the client's address is used instead. If it returns a
   * list, the limits of every key apply. A request with an empty list is not limited. If it throws an
   * `LlmError`, the request is rejected with that error: `authentication` becomes 401.
   *
   * @default the client's address
   */
  keyGenerator?(
    request: Request,
  ): RateLimitKey | readonly RateLimitKey[] | Promise<RateLimitKey | readonly RateLimitKey[]>
  /**
   * Limits of rate limit keys that bring no `limits`. Routes with another `name` count such keys separately.
   *
   * @default the limits of the limiter
   */
  readonly limits?: Limits | undefined
  /**
   * Requests per `windowMs`, as an alternative to `limits`: a whole number from 1 to 6e15 / `windowMs`. The
   * bucket does not reset at the end of a window. After a pause, one window can admit up to twice `limit`.
   *
   * @default `limits`
   */
  readonly limit?: number | undefined
  /**
   * Whole milliseconds in which an empty bucket of `limit` requests refills completely, at most 366 days.
   *
   * @default 60,000
   */
  readonly windowMs?: number | undefined
  /**
   * Routes with the same name share the counts of keys that bring no `limits`. Give such routes the same
   * limits. The limiter stores these keys with a prefix: the name and a space.
   *
   * @default one name per set of limits, so that routes with the same limits share their counts
   */
  readonly name?: string | undefined
  /** How many requests to count for one HTTP request. @default 1 */
  readonly requests?: number | RequestFunction<Request, number> | undefined
  /**
   * How many tokens to count for one HTTP request, in any unit that the app chooses. A route can settle the
   * actual cost with its reservation.
   *
   * @default 0
   */
  readonly tokens?: number | RequestFunction<Request, number> | undefined
  /** Returns `true` for requests that are not limited. @default none: all requests are limited */
  skip?(request: Request): boolean | Promise<boolean>
  /**
   * Whether to admit requests while the limiter fails, for example because its database is unavailable. With
   * `false`, such a request gets 503 with `retry-after`. A function decides for each error and request. If it
   * throws or rejects, the request gets 503.
   *
   * @default false
   */
  readonly passOnStoreError?:
    | boolean
    | ((cause: unknown, request: Request) => boolean | Promise<boolean>)
    | undefined
  /** Number of leading bits of an IPv6 address that identify a client, from 32 to 128. @default 64 */
  readonly ipv6Subnet?: number | undefined
}

type RequestFunction<Request, Result> = (request: Request) => Result | Promise<Result>

/** Throws a `TypeError` that names the wrong option. */
export function checkRouteLimitOptions<Request>(options: RouteLimitOptions<Request>): void {
  for (const [name, newName] of Object.entries(renamed))
    if (options && name in options) throw new TypeError(`Unknown option \`${name}\`, expected \`${newName}\``)
  checkKeys('', options, optionNames)
  const { limits, limit, windowMs, name, requests, tokens, passOnStoreError = false } = options
  for (const option of ['keyGenerator', 'skip'] as const) {
    const given: unknown = options[option]
    if (given !== undefined && typeof given !== 'function')
      throw new TypeError(
        `Expected \`${option}\` to be a function of the request, got ${describeValue(given)}`,
      )
  }
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new TypeError(`Expected \`name\` to be a text, got ${describeValue(name)}`)
  if (typeof passOnStoreError !== 'function' && typeof passOnStoreError !== 'boolean')
    throw new TypeError(
      `Expected \`passOnStoreError\` to be true, false or a function, got ${describeValue(passOnStoreError)}`,
    )
  if (limits !== undefined && (limit !== undefined || windowMs !== undefined))
    throw new TypeError('Expected `limits`, or `limit` with `windowMs`, got both')
  if (limits !== undefined) {
    checkLimits(limits)
    for (const name of ['inputTokensPerMinute', 'outputTokensPerMinute'] as const)
      if (limits[name] !== undefined)
        throw new TypeError(`Unknown option \`limits.${name}\`: the routes of an app count \`tokens\``)
  } else if (limit !== undefined || windowMs !== undefined)
    checkWindowLimit({ limit, windowMs: windowMs ?? minuteMs } as WindowLimit)
  checkRange('ipv6Subnet', options.ipv6Subnet, 32, 128)
  checkCost({
    requests: typeof requests === 'function' || requests === undefined ? 0 : requests,
    tokens: typeof tokens === 'function' || tokens === undefined ? 0 : tokens,
  })
}

/** Option names of express-rate-limit and of earlier versions, with the current names. */
const renamed = { subject: 'keyGenerator', onError: 'passOnStoreError', max: 'limit' }

const optionNames = [
  'keyGenerator',
  'limits',
  'limit',
  'windowMs',
  'name',
  'requests',
  'tokens',
  'skip',
  'passOnStoreError',
  'ipv6Subnet',
] satisfies (keyof RouteLimitOptions<never>)[]

/**
 * Returns the limits of a route. A `limit` with a window of a minute becomes `requestsPerMinute`, so
 * that a route with either option uses the same bucket.
 */
export function limitsOf({
  limits,
  limit,
  windowMs = minuteMs,
}: Pick<RouteLimitOptions<never>, 'limits' | 'limit' | 'windowMs'>): Limits | WindowLimit | undefined {
  if (limit === undefined) return limits
  return windowMs === minuteMs ? { requestsPerMinute: limit } : { limit, windowMs }
}
