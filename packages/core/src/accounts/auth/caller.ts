/** The caller of a request. */
import type { Limits } from '../../limits/limits.ts'
import type { SpendingLimit } from '../spending-limit.ts'

/** What a caller may do: use models; add and delete models; manage keys. */
export type Scope = 'inference' | 'models' | 'admin'

export interface Caller {
  /** A user or a team of the app, or the id of a key. Limits and spending are counted per id. */
  readonly id: string
  /** Callers of one tenant share cached prompts. Other tenants cannot detect them, not even by timing. @default `id` */
  readonly tenant?: string | undefined
  /** @default the option `scopes`, else ['inference'] */
  readonly scopes?: readonly Scope[] | undefined
  /** The only models that this caller sees. @default all */
  readonly models?: readonly string[] | undefined
  readonly limits?: Limits | undefined
  /** The name of limits in the option `tiers`. The caller's own limits take precedence. */
  readonly tier?: string | undefined
  readonly spendingLimit?: SpendingLimit | undefined
  /** Set where the caller is an API key. */
  readonly key?: { readonly id: string; readonly name: string } | undefined
}
