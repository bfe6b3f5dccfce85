/** The caller of a request. */
import type { InferenceLimits } from '../../limits/limits.ts'
import type { SpendingLimit } from '../spending-limit.ts'

/**
 * `inference` allows using models. `models` allows adding, deleting and unloading them, and choosing their
 * context size and keep-alive. `admin:read` allows reading everything in the admin API but the results of batches, and
 * the metrics. `admin` also allows these, and managing keys. `fleet` is for another app with Modelmount, whose calls name
 * their tenant: that app has limited and charged them.
 */
export type Scope = (typeof allScopes)[number]

export const allScopes = ['inference', 'models', 'admin:read', 'admin', 'fleet'] as const

/** Whether these scopes include another one. `admin` includes `admin:read`. */
export const includesScope = (scopes: readonly Scope[], scope: Scope): boolean =>
  scopes.includes(scope) || (scope === 'admin:read' && scopes.includes('admin'))

/** Limits with a name, and a share of each model's time. */
export interface Tier extends InferenceLimits {
  /**
   * Share of a model's time that a tenant of this tier gets, relative to other tenants that use the model at the
   * same time: a whole number from 1 to 10.
   *
   * @default 1
   */
  readonly weight?: number | undefined
}

/** Tiers by name. */
export type Tiers = Readonly<Record<string, Tier>>

/** The user, team or API key that makes a call, as `authenticate` of the host app returns it. */
export interface Caller {
  /** Id of a user or team of the host app, or of an API key. Limits and spending are counted per id. */
  readonly id: string
  /**
   * Callers of one tenant share cached prompts, and together have one share of each model's time. Callers of
   * other tenants cannot detect these prompts, not even by timing.
   *
   * @default `id`
   */
  readonly tenant?: string | undefined
  /** What the caller may do. @default the option `scopes`, else ['inference'] */
  readonly scopes?: readonly Scope[] | undefined
  /**
   * Names of the models that this caller may see and use, and patterns in which `*` stands for any characters.
   *
   * @default all
   */
  readonly models?: readonly string[] | undefined
  /** Rate limits of this caller. @default those of its tier, else none */
  readonly limits?: InferenceLimits | undefined
  /**
   * Name of a tier in the option `tiers`. The caller's own `limits` take precedence over those of the tier.
   */
  readonly tier?: string | undefined
  /** How much the calls of this caller may cost per period, in dollars. @default no limit */
  readonly spendingLimit?: SpendingLimit | undefined
  /** Set if the caller is an API key of `llm.keys`. Its answers end when the key is revoked or deleted. */
  readonly key?: { readonly id: string; readonly name: string } | undefined
}

/** The tenant of a caller. Calls without a caller are those of the app itself, which is one tenant. */
export const tenantOf = (caller: Pick<Caller, 'id' | 'tenant'> | undefined): string =>
  caller?.tenant ?? caller?.id ?? ''
