/**
 * Finds the limits and the weight of a caller. The caller's own limits take precedence over the limits of its
 * tier.
 */
import { createHash } from 'node:crypto'
import { LlmError } from '../../errors.ts'
import type { InferenceLimits, LimitedCaller, Subject } from '../../limits/limits.ts'
import type { Tier, Tiers } from './caller.ts'

export class CallerSubjects {
  #tiers: Tiers | undefined

  /** @param tiers undefined if the app has no such option */
  constructor(tiers: Tiers | undefined) {
    this.#tiers = tiers
  }

  /** Replaces the tiers of calls that begin from now on. */
  setTiers(tiers: Tiers): void {
    this.#tiers = tiers
  }

  /** Undefined if the app has no such option. */
  get tiers(): Tiers | undefined {
    return this.#tiers
  }

  /**
   * Returns the id under which the rate limiter counts a caller's calls, and the caller's limits. `limits` is
   * undefined if there are none. Throws an `LlmError` `internal` for an unknown tier.
   */
  of(caller: LimitedCaller): Subject {
    const { maxOutputTokens, perEndUser, ...limits } = this.#limitsOf(caller)
    return { id: `caller:${caller.id}`, ...(hasAny(limits) && { limits }) }
  }

  /**
   * Returns the subject that counts the calls of one end user of the caller. All calls without an end user
   * have the same subject, so that a client cannot escape the limits by leaving the id out. Undefined if the
   * caller does not limit its end users.
   */
  endUserOf(caller: LimitedCaller, endUser: string | undefined): Subject | undefined {
    const limits = omitUndefined(this.#limitsOf(caller).perEndUser)
    if (!hasAny(limits)) return undefined
    // The id may be a number: in process, the host app passes it.
    const id = `${endUser ?? ''}`
    return id === ''
      ? { id: `end-user:${caller.id}:none`, limits, label: 'for calls without an end user' }
      : { id: `end-user:${caller.id}:${hash(id)}`, limits, label: 'per end user' }
  }

  /** Returns the maximum output tokens of a call. Undefined if the caller has no such limit. */
  maxOutputTokensOf(caller: LimitedCaller): number | undefined {
    return this.#limitsOf(caller).maxOutputTokens
  }

  /**
   * Returns a subject with only the caller's limit of requests per minute. Undefined if the caller has no
   * such limit.
   *
   * @param bucket the beginning of the subject's id. Requests in different buckets are counted separately
   */
  requestsOf(caller: LimitedCaller, bucket: string): Subject | undefined {
    const { requestsPerMinute } = this.#limitsOf(caller)
    return requestsPerMinute === undefined
      ? undefined
      : { id: `${bucket}:${caller.id}`, limits: { requestsPerMinute } }
  }

  /** Returns the weight of the caller's tier. Throws `internal` for an unknown tier. */
  weightOf({ tier }: Pick<LimitedCaller, 'tier'>): number {
    return this.#tierOf(tier).weight ?? 1
  }

  #limitsOf({ tier, limits }: Pick<LimitedCaller, 'tier' | 'limits'>): InferenceLimits {
    const { weight: _, ...ofTier } = this.#tierOf(tier)
    return { ...ofTier, ...omitUndefined(limits) }
  }

  #tierOf(tier: string | undefined): Tier {
    if (tier === undefined) return {}
    if (!this.#tiers || !Object.hasOwn(this.#tiers, tier)) throw unknownTier(tier)
    return this.#tiers[tier] ?? {}
  }
}

const omitUndefined = <Given extends object>(limits: Given | undefined): Partial<Given> =>
  Object.fromEntries(
    Object.entries(limits ?? {}).filter(([, limit]) => limit !== undefined),
  ) as Partial<Given>

const hasAny = (limits: object): boolean => Object.keys(limits).length > 0

/** Gives ids of any length the same length, and keeps the personal data in them out of the database. */
const hash = (endUser: string): string => createHash('sha256').update(endUser).digest('base64url')

const unknownTier = (tier: string): LlmError =>
  new LlmError(
    'internal',
    `Unknown tier "${tier}" of the caller. The operator can add it: option \`tiers\` of createLlm(), or modelmount serve --config.`,
    { setup: true },
  )
