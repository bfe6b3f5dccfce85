/** Who is asking. */
import type { Limits } from '../../limits/limits.ts'
import type { SpendingLimit } from '../spending-limit.ts'

/** What a caller may do: ask models; change which there are; run the whole. */
export type Scope = 'inference' | 'models' | 'admin'

export interface Caller {
  /** Of the app's own making: a user, a team; or that of a key. Limits and money are counted by it. */
  readonly id: string
  /** Callers of one tenant share what the model has read for them; others cannot find it, nor tell by the time. @default `id` */
  readonly tenant?: string | undefined
  /** @default the option `scopes`, else ['inference'] */
  readonly scopes?: readonly Scope[] | undefined
  /** The only ones that are there for this caller. @default all */
  readonly models?: readonly string[] | undefined
  readonly limits?: Limits | undefined
  /** The name of limits that the options have; those of the caller's own go before. */
  readonly tier?: string | undefined
  readonly spendingLimit?: SpendingLimit | undefined
  /** Where the caller is a key of ours. */
  readonly key?: { readonly id: string; readonly name: string } | undefined
}
