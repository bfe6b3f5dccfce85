/** Routes of requests for higher limits. */
import { tenantOf } from '../../../accounts/auth/caller.ts'
import type { Decision } from '../../../accounts/keys/limit-requests.ts'
import { DecisionInput, LimitRequestInput, parseSettings } from '../../../accounts/keys/schema.ts'
import type * as settings from '../../../accounts/keys/settings.ts'
import { type AdminCall, type AdminRoute, type ChangeContext, parsePage, toPage } from '../route.ts'
import { LimitRequest } from '../schema/keys.ts'
import { After, Limit, pageOf } from '../schema/lists.ts'

export const limitRequestRoutes: readonly AdminRoute[] = [
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
    summary:
      'Request higher limits for the key of the call. 400 if one would be lower than the present limit.',
    scope: 'inference',
    body: LimitRequestInput,
    canConflict: true,
    tenantOf: ({ caller }) => tenantOf(caller),
    response: LimitRequest,
    status: 201,
    handle: ({ llm, caller, body }) => llm.keys.requests.create(caller, body as settings.LimitRequestInput),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/approve',
    name: 'approveLimitRequest',
    summary:
      'Approve a limit request: the key gets the requested limits. Limits that are higher by now stay.',
    body: DecisionInput,
    isBodyOptional: true,
    canConflict: true,
    response: LimitRequest,
    describeBefore: describeRequest,
    handle: ({ llm, id, caller, body }) =>
      llm.keys.requests.approve(id, { ...(body as Decision), decidedBy: caller.id }),
  },
  {
    method: 'POST',
    path: '/limit-requests/:id/refuse',
    name: 'refuseLimitRequest',
    summary: 'Refuse a limit request: the limits of the key do not change.',
    body: DecisionInput,
    isBodyOptional: true,
    canConflict: true,
    response: LimitRequest,
    describeBefore: describeRequest,
    handle: ({ llm, id, caller, body }) =>
      llm.keys.requests.refuse(id, { ...(body as Decision), decidedBy: caller.id }),
  },
]

/** Describes a request that is about to be decided. */
async function describeRequest({ llm, id }: AdminCall): Promise<ChangeContext> {
  const { limits, spendingLimit } = await llm.keys.requests.get(id)
  return { changes: { limits, ...(spendingLimit && { spendingLimit }) } }
}
