/** A limiter on routes of the app: what every adapter does with a call, in no framework's words. */
import { LlmError } from '../errors.ts'
import { checkKeys, describeValue } from '../options/check.ts'
import { addressSubject } from './address.ts'
import { checkCost, checkLimits } from './demand.ts'
import { limitHeaders, retryHeaders } from './headers.ts'
import type { Cost, Limits, RateLimiter, Reservation, Subject } from './limits.ts'
import { createReservation } from './reservation.ts'

export interface RouteLimitOptions<Request> {
  /**
   * Who comes under the limits: a text of the app's own making, such as `user:42`, a number, or several subjects, of which each has to
   * let the call in. An empty list is not limited. An `LlmError` that it throws is the answer: `authentication` is a 401.
   *
   * @default the address of the client; also where it says nobody (`undefined`, `null` or `''`)
   */
  subject?(request: Request): SubjectResult | Promise<SubjectResult>
  /** Of subjects that bring none of their own. Their calls are counted apart, under `name`. @default those of the limiter */
  readonly limits?: Limits | undefined
  /**
   * Under it, calls of subjects that bring no limits of their own are counted: in the limiter its text and a space are in front of their
   * ids. Routes with the same name have to have the same limits.
   *
   * @default one for each `limits`: routes with the same ones share them
   */
  readonly name?: string | undefined
  /** What a call takes of the requests per minute. @default 1 */
  readonly requests?: number | ((request: Request) => number | Promise<number>) | undefined
  /**
   * What a call takes of the tokens per minute, in any unit of the app's own. What it really took, the route says by `settle` of its
   * reservation.
   *
   * @default 0
   */
  readonly tokens?: number | ((request: Request) => number | Promise<number>) | undefined
  /**
   * What to do while the limiter fails, as with a database that is away: `refuse` with 503 and when to try again, or `admit` without a
   * limit. A function hears why, and says which.
   *
   * @default 'refuse'
   */
  readonly onError?: OnError | ((cause: unknown, request: Request) => OnError) | undefined
}

type OnError = 'refuse' | 'admit'
type SubjectResult = SubjectInput | readonly SubjectInput[]
type SubjectInput = string | number | bigint | Subject | null | undefined

/** Headers are for either answer. */
export type Admission =
  | {
      readonly headers: Readonly<Record<string, string>>
      readonly reservation: Reservation
      /** To be called when the answer is over: what nobody has settled cost what it has taken. */
      finish(): void
    }
  | { readonly headers: Readonly<Record<string, string>>; readonly refusal: LlmError }

/**
 * Throws a `TypeError` where nothing could ever be limited.
 *
 * @param addressOf as the framework sees it, which knows which proxies to believe
 */
export function createRouteLimit<Request>(
  limiter: RateLimiter,
  options: RouteLimitOptions<Request>,
  addressOf: (request: Request) => string | undefined,
): (request: Request) => Promise<Admission> {
  // What is passed on without `await` is the likeliest mistake.
  if (typeof limiter?.reserve !== 'function')
    throw new TypeError('Expected a limiter, such as `await createRateLimiter()`')
  checkRouteLimitOptions(options)
  const { limits, subject, requests = 1, tokens = 0, onError = 'refuse' } = options
  if (!subject && hasNoLimits(limits ?? limiter.limits))
    throw new TypeError(
      'Expected `limits`: neither the route nor its limiter has any, so all would be let in',
    )
  const prefix = prefixOf(options)

  const addressKey = (request: Request): string => addressSubject(addressOf(request))
  const toSubject = (input: SubjectInput, request: Request): Subject => {
    const { id, limits: own } = isSubject(input) ? input : { id: input, limits: undefined }
    if (id === undefined || id === null || id === '')
      return { id: (own ? prefixOf({ limits: own }) : prefix) + addressKey(request), limits: own ?? limits }
    return own ? { id: toId(id), limits: own } : { id: prefix + toId(id), limits }
  }
  const subjectsOf = async (request: Request): Promise<readonly Subject[]> =>
    [await subject?.(request)].flat().map((who) => toSubject(who, request))

  return async (request) => {
    try {
      const subjects = subject ? await subjectsOf(request) : [{ id: prefix + addressKey(request), limits }]
      const cost: Cost = {
        requests: typeof requests === 'number' ? requests : await requests(request),
        tokens: typeof tokens === 'number' ? tokens : await tokens(request),
      }
      const reservation = await limiter.reserve(subjects, cost).catch((cause: unknown) => {
        if (isLlmError(cause) || cause instanceof TypeError) throw cause
        const answer = typeof onError === 'function' ? onError(cause, request) : onError
        if (answer === 'admit') return createUnlimitedReservation(cost)
        throw limitsUnavailable(cause)
      })
      return {
        headers: limitHeaders(reservation.limits),
        reservation,
        // Nobody is there to be told of a database that is away; what could not be settled is settled later.
        finish: () => void reservation.settle().catch(() => {}),
      }
    } catch (cause) {
      if (!isLlmError(cause) || cause.code === 'internal') throw cause
      return {
        headers: { ...limitHeaders(cause.details.limits ?? []), ...retryHeaders(cause) },
        refusal: cause,
      }
    }
  }
}

/** Throws a `TypeError` that names what is wrong. */
export function checkRouteLimitOptions<Request>(options: RouteLimitOptions<Request>): void {
  checkKeys('', options, ['subject', 'limits', 'name', 'requests', 'tokens', 'onError'])
  const { subject, limits = {}, name, requests, tokens, onError = 'refuse' } = options
  if (subject !== undefined && typeof subject !== 'function')
    throw new TypeError(`Expected \`subject\` to be a function of the request, got ${describeValue(subject)}`)
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new TypeError(`Expected \`name\` to be a text, got ${describeValue(name)}`)
  if (typeof onError !== 'function' && onError !== 'refuse' && onError !== 'admit')
    throw new TypeError(
      `Expected \`onError\` to be 'refuse', 'admit' or a function, got ${describeValue(onError)}`,
    )
  checkLimits(limits)
  checkCost({
    requests: typeof requests === 'function' || requests === undefined ? 0 : requests,
    tokens: typeof tokens === 'function' || tokens === undefined ? 0 : tokens,
  })
}

const hasNoLimits = (limits: Limits | undefined): boolean =>
  limits !== undefined && Object.values(limits).every((limit) => limit === undefined)

/** What limits of its own count is no other route's. */
function prefixOf({ name, limits }: Pick<RouteLimitOptions<never>, 'name' | 'limits'>): string {
  if (name !== undefined) return `${name} `
  if (!limits) return ''
  const { requestsPerMinute = '', tokensPerMinute = '', concurrent = '' } = limits
  return `[${requestsPerMinute},${tokensPerMinute},${concurrent}] `
}

const isSubject = (input: SubjectInput): input is Subject =>
  typeof input === 'object' && input !== null && 'id' in input

function toId(id: unknown): string {
  if (typeof id === 'string') return id
  if (typeof id === 'bigint' || (typeof id === 'number' && Number.isFinite(id))) return String(id)
  throw new TypeError(
    `Expected \`subject\` to say a text, a number or { id, limits }, got ${describeValue(id)}`,
  )
}

const isLlmError = (cause: unknown): cause is LlmError => LlmError.from(cause) === cause

const createUnlimitedReservation = (cost: Cost): Reservation => createReservation([], cost, async () => {})

const limitsUnavailable = (cause: unknown): LlmError =>
  new LlmError(
    'overloaded',
    'The limits of this route cannot be looked up at the moment. Try again in 5 s.',
    { retryAfterMs: 5_000 },
    { cause },
  )
