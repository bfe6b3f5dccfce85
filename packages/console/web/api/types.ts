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

export type ApiKey = ResponseOf<'getKey'>
export type Spending = NonNullable<ApiKey['spending']>
export type AuditEntry = ResponseOf<'listAuditEntries'>['data'][number]
export type KeySettings = BodyOf<'createKey'>
export type KeyChanges = BodyOf<'updateKey'>
export type Limits = NonNullable<KeySettings['limits']>
export type SpendingLimit = NonNullable<KeySettings['spendingLimit']>
export type LimitStatus = ResponseOf<'getKeyLimits'>['data'][number]
export type LimitRequest = ResponseOf<'listLimitRequests'>['data'][number]
