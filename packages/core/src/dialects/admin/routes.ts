/** The admin API as a table: its routes are made of it, and so is its description. */
import type { z } from 'zod'
import type { Caller, Scope } from '../../accounts/auth/caller.ts'
import { check, KeyChanges, KeySettings, LimitWish, Rotation } from '../../accounts/keys/schema.ts'
import type * as settings from '../../accounts/keys/settings.ts'
import type { Llm } from '../../llm.ts'
import { ApiKey, Day, KeyWithSecret, LimitRequest, LimitStatus, listOf, UsageBy, UsageRow } from './schema.ts'

export interface AdminRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** In the description: what clients that are made of it call it. */
  readonly name: string
  readonly summary: string
  /** @default 'admin' */
  readonly scope?: Scope
  /** What may stand in the query. */
  readonly query?: Readonly<Record<string, z.ZodType>>
  readonly body?: z.ZodType
  /** Then an absent one is an empty object. @default false */
  readonly mayLackBody?: boolean
  /** Whether it is refused where something is so already. @default false */
  readonly mayConflict?: boolean
  readonly answer: z.ZodType
  /** @default 200 */
  readonly status?: number
  handle(call: AdminCall): Promise<unknown>
}

export interface AdminCall {
  readonly llm: Llm
  readonly caller: Caller
  /** Of the path; empty where it has none. */
  readonly id: string
  query(name: string): string | undefined
  /** Checked. */
  readonly body: unknown
}

export const adminRouteTable: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    name: 'listKeys',
    summary: 'All keys, the newest first.',
    answer: listOf(ApiKey),
    handle: async ({ llm }) => ({ data: await llm.keys.list() }),
  },
  {
    method: 'POST',
    path: '/keys',
    name: 'createKey',
    summary: 'Makes a key. Its secret is in this answer, and nowhere else.',
    body: KeySettings,
    answer: KeyWithSecret,
    status: 201,
    handle: ({ llm, body }) => llm.keys.create(body as settings.KeySettings),
  },
  {
    method: 'GET',
    path: '/keys/:id',
    name: 'getKey',
    summary: 'One key.',
    answer: ApiKey,
    handle: ({ llm, id }) => llm.keys.get(id),
  },
  {
    method: 'POST',
    path: '/keys/:id',
    name: 'updateKey',
    summary: 'Changes what is given; null takes it away.',
    body: KeyChanges,
    mayConflict: true,
    answer: ApiKey,
    handle: ({ llm, id, body }) => llm.keys.update(id, body as settings.KeyChanges),
  },
  {
    method: 'POST',
    path: '/keys/:id/rotate',
    name: 'rotateKey',
    summary: 'Gives a key another secret.',
    body: Rotation,
    mayLackBody: true,
    mayConflict: true,
    answer: KeyWithSecret,
    handle: ({ llm, id, body }) => llm.keys.rotate(id, body as Parameters<Llm['keys']['rotate']>[1]),
  },
  {
    method: 'POST',
    path: '/keys/:id/revoke',
    name: 'revokeKey',
    summary: 'Lets a key in no more, from the next call on.',
    answer: ApiKey,
    handle: ({ llm, id }) => llm.keys.revoke(id),
  },
  {
    method: 'GET',
    path: '/keys/:id/limits',
    name: 'getKeyLimits',
    summary: 'How the limits per minute of a key stand. Empty where it has none.',
    answer: listOf(LimitStatus),
    handle: async ({ llm, id }) => ({ data: await llm.limits.of(await llm.keys.get(id)) }),
  },
  {
    method: 'GET',
    path: '/limit-requests',
    name: 'listLimitRequests',
    summary: 'What keys have asked for, the oldest first.',
    query: { status: LimitRequest.shape.status },
    answer: listOf(LimitRequest),
    handle: async ({ llm, query }) => {
      const status = check(LimitRequest.shape.status.optional(), query('status'))
      return { data: await llm.keys.requests.list(status && { status }) }
    },
  },
  {
    method: 'POST',
    path: '/limit-requests',
    name: 'createLimitRequest',
    summary: 'Asks for higher limits for the key of the call.',
    scope: 'inference',
    body: LimitWish,
    mayConflict: true,
    answer: LimitRequest,
    status: 201,
    handle: ({ llm, caller, body }) => llm.keys.requests.create(caller, body as settings.LimitWish),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/approve',
    name: 'approveLimitRequest',
    summary: 'Gives the key the limits that it asked for.',
    mayConflict: true,
    answer: LimitRequest,
    handle: ({ llm, id }) => llm.keys.requests.approve(id),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/refuse',
    name: 'refuseLimitRequest',
    summary: 'Leaves the limits of the key as they are.',
    mayConflict: true,
    answer: LimitRequest,
    handle: ({ llm, id }) => llm.keys.requests.refuse(id),
  },
  {
    method: 'GET',
    path: '/usage',
    name: 'reportUsage',
    summary: 'What was used in some days, in UTC, and what it cost.',
    query: { by: UsageBy, from: Day, to: Day },
    answer: listOf(UsageRow),
    handle: async ({ llm, query }) => {
      const [from, to] = [dayOf(query('from')), dayOf(query('to'))]
      const rows = await llm.usage.report({ by: check(UsageBy, query('by') ?? 'key'), from, to })
      return { data: rows.map((row) => ({ ...row, nanoUsd: `${row.nanoUsd}` })) }
    },
  },
]

const dayOf = (text: string | undefined): Date | undefined => {
  const day = check(Day.optional(), text)
  return day === undefined ? undefined : new Date(day)
}
