/** What a request for higher limits changes. */
import type { LimitStatus, Limits } from '../api/types.ts'
import { formatCount } from '../format/numbers.ts'
import { endUserLimitNames, type LimitName, limitNames } from './limit-names.ts'

/** A limit that was asked for, beside the one that applies. */
export interface LimitChange {
  readonly name: string
  readonly requested: string
  /** Undefined without a limit. */
  readonly current: string | undefined
}

/** @param current the limits of the key with those of its tier */
export function listChanges(requested: Limits, current: Limits): readonly LimitChange[] {
  const change = (
    name: string,
    value: number | undefined,
    now: number | undefined,
  ): readonly LimitChange[] =>
    value === undefined
      ? []
      : [{ name, requested: formatCount(value), current: now === undefined ? undefined : formatCount(now) }]
  return [
    ...(Object.keys(limitNames) as LimitName[]).flatMap((name) =>
      change(limitNames[name], requested[name], current[name]),
    ),
    ...endUserLimitNames.flatMap((name) =>
      change(`${limitNames[name]}, each end user`, requested.perEndUser?.[name], current.perEndUser?.[name]),
    ),
  ]
}

/** The limits that the state of a key's limits shows, which are its own ones and those of its tier. */
export const toLimits = (statuses: readonly LimitStatus[]): Limits =>
  Object.fromEntries(
    statuses.map(({ name, limit, windowMs = 60_000 }) => [
      `${name}Per${windowMs === 86_400_000 ? 'Day' : 'Minute'}`,
      limit,
    ]),
  )

/** The limits that apply to a key: its own ones, else those of its tier. */
export const mergeLimits = (own: Limits | undefined, tier: Limits | undefined): Limits => ({
  ...tier,
  ...own,
})
