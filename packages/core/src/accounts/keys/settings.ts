/** Types of key settings, for the host app and the admin API. `schema.ts` validates the settings. */

import type { InferenceLimits } from '../../limits/limits.ts'
import type { Duration } from '../../units.ts'
import type { Caller, Scope } from '../auth/caller.ts'
import type { SpendingLimit } from '../spending-limit.ts'

/** Milliseconds, or a number with a unit: `'12h'`, `'30d'`. */
export type Lifetime = Duration | `${number}d`

/**
 * A `Date`, or an ISO string. A string without a time, such as `'2027-01-31'`, means the beginning of that
 * day in UTC.
 */
export type Timestamp = Date | `${number}-${number}-${number}${string}`

/** Settings of a new key. */
export interface KeySettings extends Pick<Caller, 'scopes' | 'models' | 'limits' | 'tier' | 'spendingLimit'> {
  /** Describes the user or the purpose of the key. */
  readonly name: string
  /**
   * Keys of one tenant share cached prompts, and have one share of each model's time together: a single line of 1
   * to 100 characters.
   *
   * @default the id of the key
   */
  readonly tenant?: string | undefined
  /**
   * How long the key is valid: milliseconds, or `'30d'`. Not allowed together with `expiresAt`.
   *
   * @default the key never expires
   */
  readonly expiresIn?: Lifetime | undefined
  /** When the key stops being valid. Not allowed together with `expiresIn`. @default the key never expires */
  readonly expiresAt?: Timestamp | undefined
}

/** Settings to change. `null` removes a setting. */
export type KeyChanges = {
  readonly [Name in keyof KeySettings]?:
    | KeySettings[Name]
    | (Name extends 'name' | 'scopes' | 'expiresIn' ? never : null)
    | undefined
}

/** Permissions and limits of a key. */
export interface Grant extends Pick<KeySettings, 'models' | 'limits' | 'tier' | 'spendingLimit'> {
  /** What the key may do, such as `inference`. */
  readonly scopes: readonly Scope[]
}

/** The limits that a key requests. */
export interface LimitRequestInput {
  /**
   * The other limits of the key do not change. At least one limit is required, here or as `spendingLimit`. None may be
   * lower than the present one, of the key or its tier.
   *
   * @default {}
   */
  readonly limits?: InferenceLimits | undefined
  /** May refuse nothing that the present one allows. @default the spending limit of the key does not change */
  readonly spendingLimit?: SpendingLimit | undefined
  /** @default '' */
  readonly reason?: string | undefined
}
