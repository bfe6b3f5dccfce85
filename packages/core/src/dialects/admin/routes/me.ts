/** Routes of a caller about itself. They need no more than the scope `inference`. */
import { tenantOf } from '../../../accounts/auth/caller.ts'
import { currentLimitsOf } from '../../../accounts/keys/limit-increase.ts'
import { LlmError } from '../../../errors.ts'
import { internals } from '../../../llm.ts'
import { type AdminCall, type AdminRoute, parsePage, toPage } from '../route.ts'
import { LimitRequest, LimitStatus, Me } from '../schema/keys.ts'
import { After, Limit, listOf, pageOf } from '../schema/lists.ts'
import { Day, UsageBy, UsageOrder, UsageRow } from '../schema/usage.ts'
import { withSpending } from './keys.ts'
import { parseUsageQuery, toUsagePage } from './usage.ts'

export const meRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/me',
    name: 'getMe',
    summary: 'Get the caller itself, and its key.',
    scope: 'inference',
    needsDatabase: false,
    response: Me,
    handle: async ({ llm, caller }) => {
      const { access, tiers } = llm[internals]
      const keys = caller.key ? await withSpending(llm, [await llm.keys.get(caller.key.id)]) : []
      return {
        caller: { id: caller.id, tenant: tenantOf(caller), scopes: access.scopesOf(caller) },
        key: keys[0],
        limits: currentLimitsOf(caller, tiers()).limits,
      }
    },
  },
  {
    method: 'GET',
    path: '/me/limits',
    name: 'getMyLimits',
    summary: 'Get the state of the limits per minute and per day of the caller. Empty if it has none.',
    scope: 'inference',
    needsDatabase: false,
    response: listOf(LimitStatus),
    handle: async ({ llm, caller }) => ({ data: await llm.limits.of(caller) }),
  },
  {
    method: 'GET',
    path: '/me/usage',
    name: 'reportMyUsage',
    summary: 'Report usage and cost of the caller, in a range of days, in UTC.',
    scope: 'inference',
    query: { by: UsageBy, from: Day, to: Day, order: UsageOrder, limit: Limit, after: After },
    response: pageOf(UsageRow),
    handle: async ({ llm, caller, query }) => {
      const usage = parseUsageQuery(query)
      const rows = await llm.usage.report({ ...usage, caller: caller.id })
      return toUsagePage(rows, usage)
    },
  },
  {
    method: 'GET',
    path: '/me/limit-requests',
    name: 'listMyLimitRequests',
    summary: 'List the limit requests of the key of the call, oldest first.',
    scope: 'inference',
    query: { limit: Limit, after: After },
    response: pageOf(LimitRequest),
    handle: async (call) => {
      const page = parsePage(call.query)
      const rows = await call.llm.keys.requests.list({ ...page, keyId: keyOf(call) })
      return toPage(rows, page, ({ id }) => id)
    },
  },
]

function keyOf({ caller }: AdminCall): string {
  if (!caller.key)
    throw new LlmError('permission', 'Limit requests require an API key. Call this route with one.')
  return caller.key.id
}
