/** Routes of tiers. The app sets them with the option `tiers`, so they cannot be changed here. */
import { internals } from '../../../llm.ts'
import type { AdminRoute } from '../route.ts'
import { TierRow } from '../schema/keys.ts'
import { listOf } from '../schema/lists.ts'

export const tierRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/tiers',
    name: 'listTiers',
    summary: 'List the tiers of the app: their names, limits and weights.',
    needsDatabase: false,
    response: listOf(TierRow),
    handle: async ({ llm }) => {
      const tiers = llm[internals].tiers()
      const counts = llm.keys.hasDatabase ? await llm.keys.countByTier(Object.keys(tiers)) : []
      return {
        data: Object.entries(tiers).map(([name, { weight = 1, ...limits }], index) => ({
          ...{ name, limits, weight, keys: counts[index] ?? 0 },
        })),
      }
    },
  },
]
