/** Routes of the admin API. The OpenAPI document is created from this table. */
import type { z } from 'zod'
import type { Caller, Scope } from '../../accounts/auth/caller.ts'
import {
  KeyChanges,
  KeySettings,
  LimitRequestInput,
  parseSettings,
  Rotation,
} from '../../accounts/keys/schema.ts'
import type * as settings from '../../accounts/keys/settings.ts'
import { maxPageSize, type PageQuery } from '../../accounts/page.ts'
import { internals, type Llm } from '../../llm.ts'
import {
  ActivityNow,
  After,
  ApiKey,
  Day,
  DeletedTenant,
  KeyWithSecret,
  Limit,
  LimitRequest,
  LimitStatus,
  listOf,
  pageOf,
  TenantDeletion,
  UsageBy,
  UsageRow,
} from './schema.ts'

export interface AdminRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The `operationId`, which generated clients use as the method's name. */
  readonly name: string
  readonly summary: string
  /** @default 'admin:read' for GET, else 'admin' */
  readonly scope?: Scope
  /** Schemas of the query parameters. */
  readonly query?: Readonly<Record<string, z.ZodType>>
  readonly body?: z.ZodType
  /** Whether an absent body counts as an empty object. @default false */
  readonly isBodyOptional?: boolean
  /** Whether the route can answer 409. @default false */
  readonly canConflict?: boolean
  readonly response: z.ZodType
  /** @default 200 */
  readonly status?: number
  handle(call: AdminCall): Promise<unknown>
}

export const scopeOf = ({ method, scope = method === 'GET' ? 'admin:read' : 'admin' }: AdminRoute): Scope =>
  scope

export interface AdminCall {
  readonly llm: Llm
  readonly caller: Caller
  /** Path parameter `:id`. Empty for routes without this parameter. */
  readonly id: string
  query(name: string): string | undefined
  /** Request body, validated by the route's schema. */
  readonly body: unknown
}

export const adminRouteTable: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    name: 'listKeys',
    summary: 'List keys, newest first.',
    query: { limit: Limit, after: After },
    response: pageOf(ApiKey),
    handle: async ({ llm, query }) => {
      const page = parsePage(query)
      return toPage(await llm.keys.list(page), page, ({ id }) => id)
    },
  },
  {
    method: 'POST',
    path: '/keys',
    name: 'createKey',
    summary: 'Create a key. Only this response contains its secret.',
    body: KeySettings,
    response: KeyWithSecret,
    status: 201,
    handle: ({ llm, body }) => llm.keys.create(body as settings.KeySettings),
  },
  {
    method: 'GET',
    path: '/keys/:id',
    name: 'getKey',
    summary: 'Get a key.',
    response: ApiKey,
    handle: ({ llm, id }) => llm.keys.get(id),
  },
  {
    method: 'POST',
    path: '/keys/:id',
    name: 'updateKey',
    summary: 'Update the given settings of a key. null removes a setting.',
    body: KeyChanges,
    canConflict: true,
    response: ApiKey,
    handle: ({ llm, id, body }) => llm.keys.update(id, body as settings.KeyChanges),
  },
  {
    method: 'POST',
    path: '/keys/:id/rotate',
    name: 'rotateKey',
    summary: 'Rotate a key: create another secret and expire the previous ones.',
    body: Rotation,
    isBodyOptional: true,
    canConflict: true,
    response: KeyWithSecret,
    handle: ({ llm, id, body }) => llm.keys.rotate(id, body as Parameters<Llm['keys']['rotate']>[1]),
  },
  {
    method: 'POST',
    path: '/keys/:id/revoke',
    name: 'revokeKey',
    summary: 'Revoke a key, from the next call on.',
    response: ApiKey,
    handle: ({ llm, id }) => llm.keys.revoke(id),
  },
  {
    method: 'GET',
    path: '/keys/:id/limits',
    name: 'getKeyLimits',
    summary: 'Get the state of the limits per minute and per day of a key. Empty if it has none.',
    response: listOf(LimitStatus),
    handle: async ({ llm, id }) => ({ data: await llm.limits.of(await llm.keys.get(id)) }),
  },
  {
    method: 'GET',
    path: '/limit-requests',
    name: 'listLimitRequests',
    summary: 'List limit requests, oldest first.',
    query: { status: LimitRequest.shape.status, limit: Limit, after: After },
    response: pageOf(LimitRequest),
    handle: async ({ llm, query }) => {
      const status = parseSettings(LimitRequest.shape.status.optional(), query('status'))
      const page = parsePage(query)
      return toPage(await llm.keys.requests.list({ status, ...page }), page, ({ id }) => id)
    },
  },
  {
    method: 'POST',
    path: '/limit-requests',
    name: 'createLimitRequest',
    summary: 'Request higher limits for the key of the call.',
    scope: 'inference',
    body: LimitRequestInput,
    canConflict: true,
    response: LimitRequest,
    status: 201,
    handle: ({ llm, caller, body }) => llm.keys.requests.create(caller, body as settings.LimitRequestInput),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/approve',
    name: 'approveLimitRequest',
    summary: 'Approve a limit request: the key gets the requested limits.',
    canConflict: true,
    response: LimitRequest,
    handle: ({ llm, id }) => llm.keys.requests.approve(id),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/refuse',
    name: 'refuseLimitRequest',
    summary: 'Refuse a limit request: the limits of the key do not change.',
    canConflict: true,
    response: LimitRequest,
    handle: ({ llm, id }) => llm.keys.requests.refuse(id),
  },
  {
    method: 'POST',
    path: '/tenants/:id/delete',
    name: 'deleteTenant',
    summary: 'Delete the keys, usage, prompt states and stored content of a tenant. Can be repeated.',
    body: TenantDeletion,
    isBodyOptional: true,
    canConflict: true,
    response: DeletedTenant,
    handle: ({ llm, id, body }) => llm.tenants.delete(id, body as z.output<typeof TenantDeletion>),
  },
  {
    method: 'GET',
    path: '/usage',
    name: 'reportUsage',
    summary: 'Report usage and cost of a range of days, in UTC.',
    query: { by: UsageBy, from: Day, to: Day, limit: Limit, after: After },
    response: pageOf(UsageRow),
    handle: async ({ llm, query }) => {
      const [from, to] = [parseDay(query('from')), parseDay(query('to'))]
      const by = parseSettings(UsageBy, query('by') ?? 'key')
      const page = parsePage(query)
      const rows = await llm.usage.report({ by, from, to, ...page })
      return toPage(
        rows.map(({ nanoUsd, batch, ...row }) => ({
          ...row,
          nanoUsd: `${nanoUsd}`,
          batch: { ...batch, nanoUsd: `${batch.nanoUsd}` },
        })),
        page,
        ({ group }) => group,
      )
    },
  },
  {
    method: 'GET',
    path: '/activity',
    name: 'getActivity',
    summary: 'Get the calls that run now, the queues and the loaded models of this process.',
    scope: 'admin:read',
    response: ActivityNow,
    handle: async ({ llm }) => llm[internals].liveCalls.activity(),
  },
]

/** Core checks the limit. */
function parsePage(query: AdminCall['query']): Page {
  const limit = query('limit')
  return { limit: limit === undefined ? maxPageSize : Number(limit || Number.NaN), after: query('after') }
}

/** Adds `next`, the value of `after` for the next page, unless this is the last page. */
const toPage = <Row>(data: readonly Row[], { limit }: Page, idOf: (row: Row) => string): object => {
  const last = data.at(-1)
  return { data, ...(last !== undefined && data.length >= limit && { next: idOf(last) }) }
}

interface Page extends PageQuery {
  readonly limit: number
}

const parseDay = (text: string | undefined): Date | undefined => {
  const day = parseSettings(Day.optional(), text)
  return day === undefined ? undefined : new Date(day)
}
