/** Finds the rate limits of a caller. The caller's own limits take precedence over the limits of its tier. */
import { LlmError } from '../../errors.ts'
import type { Limits, Subject } from '../../limits/limits.ts'
import type { Caller } from './caller.ts'

export class CallerSubjects {
  readonly #tiers: Readonly<Record<string, Limits>>

  constructor(tiers: Readonly<Record<string, Limits>>) {
    this.#tiers = tiers
  }

  /**
   * Returns the id under which the rate limiter counts a caller's calls, and the caller's limits. `limits` is
   * undefined if there are none. Throws an `LlmError` `internal` for an unknown tier.
   */
  of(caller: Pick<Caller, 'id' | 'tier' | 'limits'>): Subject {
    const limits = this.#limitsOf(caller)
    return { id: `caller:${caller.id}`, ...(Object.keys(limits).length > 0 && { limits }) }
  }

  /**
   * Returns a subject with only the caller's limit of requests per minute. Undefined if the caller has no
   * such limit.
   *
   * @param bucket the beginning of the subject's id. Requests in different buckets are counted separately
   */
  requestsOf(caller: Pick<Caller, 'id' | 'tier' | 'limits'>, bucket: string): Subject | undefined {
    const { requestsPerMinute } = this.#limitsOf(caller)
    return requestsPerMinute === undefined
      ? undefined
      : { id: `${bucket}:${caller.id}`, limits: { requestsPerMinute } }
  }

  #limitsOf({ tier, limits }: Pick<Caller, 'tier' | 'limits'>): Limits {
    if (tier === undefined) return omitUndefined(limits)
    if (!Object.hasOwn(this.#tiers, tier)) throw unknownTier(tier)
    return { ...this.#tiers[tier], ...omitUndefined(limits) }
  }
}

const omitUndefined = (limits: Limits = {}): Limits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))

const unknownTier = (tier: string): LlmError =>
  new LlmError(
    'internal',
    `Unknown tier "${tier}" of the caller. In the app, add it to the option \`tiers\` of createLlm().`,
    { setup: true },
  )
