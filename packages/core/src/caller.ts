/** Who is asking. */

/** What a caller may do: ask models; change which there are; run the whole. */
export type Scope = 'inference' | 'models' | 'admin'

export interface Caller {
  /** Of the app's own making: a user, a team, a key. */
  readonly id: string
  /** Callers of one tenant share what the model has read for them; others cannot find it, nor tell by the time. @default `id` */
  readonly tenant?: string
  /** @default those of the option `scopes` of `createLlm` */
  readonly scopes?: readonly Scope[]
}
