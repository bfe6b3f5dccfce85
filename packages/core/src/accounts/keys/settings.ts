/** What can be said of a key, in the app and over HTTP alike. What is right is in `schema.ts`. */

import type { Limits } from '../../limits/limits.ts'
import type { Duration } from '../../units.ts'
import type { Caller, Scope } from '../auth/caller.ts'

/** Milliseconds, or a number with a unit: `'12h'`, `'30d'`. */
export type Lifetime = Duration | `${number}d`

/** The same, or when; of a day alone, such as `'2027-01-31'`, the beginning in UTC. */
export type Expiry = Lifetime | `${number}-${number}-${number}${string}` | Date

/** What a key is made with. */
export interface KeySettings extends Pick<Caller, 'scopes' | 'models' | 'limits' | 'tier' | 'spendLimit'> {
  /** For people: whose it is, or for what. */
  readonly name: string
  /** @default never */
  readonly expires?: Expiry | undefined
}

/** What of it changes; `null` takes it away. */
export type KeyChanges = {
  readonly [Name in keyof KeySettings]?:
    | KeySettings[Name]
    | (Name extends 'name' | 'scopes' ? never : null)
    | undefined
}

/** What is kept of the settings as it is. */
export interface Grant extends Pick<KeySettings, 'models' | 'limits' | 'tier' | 'spendLimit'> {
  readonly scopes: readonly Scope[]
}

/** What a key asks for. */
export interface LimitRequestInput {
  /** One at least; those that are not named stay. */
  readonly limits: Limits
  /** @default '' */
  readonly reason?: string | undefined
}
