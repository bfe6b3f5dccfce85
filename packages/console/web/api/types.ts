/** Names for the types of the admin API. */
import type { operations } from './admin-api.d.ts'

/** JSON body of a successful response. */
export type ResponseOf<Name extends keyof operations> = operations[Name]['responses'] extends {
  200: { content: { 'application/json': infer Body } }
}
  ? Body
  : operations[Name]['responses'] extends { 201: { content: { 'application/json': infer Body } } }
    ? Body
    : never

/** JSON body of a request. */
export type BodyOf<Name extends keyof operations> = operations[Name] extends {
  requestBody: { content: { 'application/json': infer Body } }
}
  ? Body
  : never

export type ApiKey = ResponseOf<'getKey'> & { readonly spending?: Spending }
export type KeySettings = BodyOf<'createKey'>
export type KeyChanges = BodyOf<'updateKey'>
export type Limits = NonNullable<KeySettings['limits']>
export type SpendingLimit = NonNullable<KeySettings['spendingLimit']>
export type LimitStatus = ResponseOf<'getKeyLimits'>['data'][number]
export type LimitRequest = ResponseOf<'listLimitRequests'>['data'][number] & {
  readonly keyName?: string
  readonly note?: string
  readonly decidedBy?: string
}

/** Spending of a key with a spending limit, in the current period. */
export interface Spending {
  readonly nanoUsd: string
  readonly limitNanoUsd: string
  readonly period: SpendingLimit['period']
  readonly resetsAt?: string
}
