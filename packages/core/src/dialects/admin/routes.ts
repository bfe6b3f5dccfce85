/** The admin API as a table: its routes are made of it, and so is its description. */
import type { z } from 'zod'
import type { Caller, Scope } from '../../caller.ts'
import { check, KeyChanges, KeySettings, LimitWish } from '../../keys/schema.ts'
import type * as settings from '../../keys/settings.ts'
import type { Llm } from '../../llm.ts'
import { ApiKey, Day, KeyWithSecret, LimitRequest, listOf, Rotation, UsageBy, UsageRow } from './schema.ts'

export interface AdminRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly summary: string
  /** @default 'admin' */
  readonly scope?: Scope
  /** What may stand in the query. */
  readonly query?: Readonly<Record<string, z.ZodType>>
  readonly body?: z.ZodType
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
    summary: 'All keys, the newest first.',
    answer: listOf(ApiKey),
    handle: async ({ llm }) => ({ data: await llm.keys.list() }),
  },
  {
    method: 'POST',
    path: '/keys',
    summary: 'Makes a key. Its secret is in this answer, and nowhere else.',
    body: KeySettings,
    answer: KeyWithSecret,
    status: 201,
    handle: ({ llm, body }) => llm.keys.create(body as settings.KeySettings),
  },
  {
    method: 'GET',
    path: '/keys/:id',
    summary: 'One key.',
    answer: ApiKey,
    handle: ({ llm, id }) => llm.keys.get(id),
  },
  {
    method: 'POST',
    path: '/keys/:id',
    summary: 'Changes what is given; null takes it away.',
    body: KeyChanges,
    answer: ApiKey,
    handle: ({ llm, id, body }) => llm.keys.update(id, body as settings.KeyChanges),
  },
  {
    method: 'POST',
    path: '/keys/:id/rotate',
    summary: 'Gives a key another secret.',
    body: Rotation,
    answer: KeyWithSecret,
    handle: ({ llm, id, body }) => llm.keys.rotate(id, body as Parameters<Llm['keys']['rotate']>[1]),
  },
  {
    method: 'POST',
    path: '/keys/:id/revoke',
    summary: 'Lets a key in no more, from the next call on.',
    answer: ApiKey,
    handle: ({ llm, id }) => llm.keys.revoke(id),
  },
  {
    method: 'GET',
    path: '/limit-requests',
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
    summary: 'Asks for higher limits for the key of the call.',
    scope: 'inference',
    body: LimitWish,
    answer: LimitRequest,
    status: 201,
    handle: ({ llm, caller, body }) => llm.keys.requests.create(caller, body as settings.LimitWish),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/approve',
    summary: 'Gives the key the limits that it asked for.',
    answer: LimitRequest,
    handle: ({ llm, id }) => llm.keys.requests.approve(id),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/refuse',
    summary: 'Leaves the limits of the key as they are.',
    answer: LimitRequest,
    handle: ({ llm, id }) => llm.keys.requests.refuse(id),
  },
  {
    method: 'GET',
    path: '/usage',
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
