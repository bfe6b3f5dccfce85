/** Settings of keys, the same in the app and over HTTP. `schema.ts` checks them. */

import type { Limits } from '../../limits/limits.ts'
import type { Duration } from '../../units.ts'
import type { Caller, Scope } from '../auth/caller.ts'

/** Milliseconds, or a number with a unit: `'12h'`, `'30d'`. */
export type Lifetime = Duration | `${number}d`

/** A date, or an ISO string. A day alone, such as `'2027-01-31'`, means its beginning in UTC. */
export type Timestamp = Date | `${number}-${number}-${number}${string}`

/** Settings of a new key. */
export interface KeySettings extends Pick<Caller, 'scopes' | 'models' | 'limits' | 'tier' | 'spendingLimit'> {
  /** For people: the user or the purpose of the key. */
  readonly name: string
  /** How long the key is valid. Excludes `expiresAt`. @default the key never expires */
  readonly expiresIn?: Lifetime | undefined
  /** When the key stops being valid. Excludes `expiresIn`. @default the key never expires */
  readonly expiresAt?: Timestamp | undefined
}

/** Changed settings; `null` removes one. */
export type KeyChanges = {
  readonly [Name in keyof KeySettings]?:
    | KeySettings[Name]
    | (Name extends 'name' | 'scopes' | 'expiresIn' ? never : null)
    | undefined
}

/** What a key may do, and how much. */
export interface Grant extends Pick<KeySettings, 'models' | 'limits' | 'tier' | 'spendingLimit'> {
  readonly scopes: readonly Scope[]
}

/** The limits that a key requests. */
export interface LimitRequestInput {
  /** At least one. Other limits stay. */
  readonly limits: Limits
  /** @default '' */
  readonly reason?: string | undefined
}
