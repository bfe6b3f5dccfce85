/** Compares the limits that a key requests with those that it has. A request can only raise limits. */
import { invalidRequest } from '../../errors.ts'
import type { InferenceLimits } from '../../limits/limits.ts'
import type { Tiers } from '../auth/caller.ts'
import { describeSpendingLimit, type SpendingLimit, toNanoUsdLimit } from '../spending-limit.ts'
import type { Grant } from './settings.ts'

/** Requested limits. */
export interface LimitIncrease {
  readonly limits: InferenceLimits
  readonly spendingLimit?: SpendingLimit | undefined
}

/** Present limits of a key. */
export interface CurrentLimits extends LimitIncrease {
  /** Whether `limits` contains those of the tier. Not so if the app does not know the tier. */
  readonly isComplete: boolean
}

type LimitValues = Readonly<Record<string, number | undefined>>

/** Returns the limits that apply to a key: its own ones, else those of its tier. */
export function currentLimitsOf(
  { limits, tier, spendingLimit }: Pick<Grant, 'limits' | 'tier' | 'spendingLimit'>,
  tiers: Tiers = {},
): CurrentLimits {
  const isComplete = tier === undefined || Object.hasOwn(tiers, tier)
  const { weight: _, ...ofTier } = (isComplete && tier !== undefined && tiers[tier]) || {}
  return { limits: { ...ofTier, ...limits }, spendingLimit, isComplete }
}

/** Throws an `invalid_request` that names the first limit that would become lower. */
export function expectIncrease({ limits, spendingLimit }: LimitIncrease, current: CurrentLimits): void {
  const { perEndUser, ...own } = limits
  const expectHigher = (prefix: string, requested: LimitValues, now: LimitValues): void => {
    for (const [name, value] of Object.entries(requested))
      if (value !== undefined && isLower(value, now[name], current.isComplete))
        throw lowerLimit(`${prefix}${name}`, `${value}`, now[name])
  }
  expectHigher('limits.', own, ownLimitsOf(current))
  expectHigher('limits.perEndUser.', { ...perEndUser }, { ...current.limits.perEndUser })
  if (spendingLimit && isLowerSpending(spendingLimit, current.spendingLimit))
    throw lowerLimit(
      'spendingLimit',
      describeSpendingLimit(spendingLimit),
      current.spendingLimit && describeSpendingLimit(current.spendingLimit),
    )
}

/** Raises the limits of a key. A limit that is higher than the requested one by now, or that is gone, stays so. */
export function raiseLimits(grant: Grant, { limits, spendingLimit }: LimitIncrease, tiers?: Tiers): Grant {
  const current = currentLimitsOf(grant, tiers)
  const higher = (requested: LimitValues, now: LimitValues): LimitValues =>
    Object.fromEntries(
      Object.entries(requested).filter(
        ([name, value]) => value !== undefined && !isLower(value, now[name], current.isComplete),
      ),
    )
  const { perEndUser, ...own } = limits
  const perEndUserNow = { ...current.limits.perEndUser }
  const higherPerEndUser = higher({ ...perEndUser }, perEndUserNow)
  const raised = {
    ...grant.limits,
    ...higher(own, ownLimitsOf(current)),
    ...(hasAny(higherPerEndUser) && { perEndUser: { ...perEndUserNow, ...higherPerEndUser } }),
  }
  return {
    ...grant,
    ...(hasAny(raised) && { limits: raised }),
    ...(spendingLimit && !isLowerSpending(spendingLimit, grant.spendingLimit) && { spendingLimit }),
  }
}

const ownLimitsOf = ({ limits: { perEndUser: _, ...own } }: CurrentLimits): LimitValues => own

const isLower = (requested: number, now: number | undefined, isComplete: boolean): boolean =>
  now === undefined ? isComplete : requested < now

/** Whether the requested limit would refuse spending that the present one allows. */
function isLowerSpending(requested: SpendingLimit, current: SpendingLimit | undefined): boolean {
  if (!current) return true
  const [wanted, now] = [toNanoUsdLimit(requested), toNanoUsdLimit(current)]
  return wanted.nanoUsd < now.nanoUsd * mostPeriods[now.period][wanted.period]
}

/** How often a period, by its name, can begin in another one. */
const mostPeriods: Readonly<
  Record<SpendingLimit['period'], Readonly<Record<SpendingLimit['period'], number>>>
> = {
  day: { day: 1, month: 31, lifetime: Number.POSITIVE_INFINITY },
  month: { day: 1, month: 1, lifetime: Number.POSITIVE_INFINITY },
  lifetime: { day: 1, month: 1, lifetime: 1 },
}

const hasAny = (limits: object): boolean => Object.keys(limits).length > 0

const lowerLimit = (param: string, requested: string, now: number | string | undefined): Error =>
  invalidRequest(
    now === undefined
      ? `${param}: ${requested} would be lower than the present limit: the key has none. Leave the field out.`
      : `${param}: ${requested} would be lower than the present limit of ${now}. A request can only raise limits.`,
    { param },
  )
