/** Routes of calls over time. */
import { parseSettings } from '../../../accounts/keys/schema.ts'
import { internals } from '../../../llm.ts'
import type { AdminRoute } from '../route.ts'
import { listOf } from '../schema/lists.ts'
import { TrafficBy, TrafficFilters, TrafficInterval, TrafficRow, TrafficTime } from '../schema/traffic.ts'
import { UsageKey, UsageModel } from '../schema/usage.ts'

export const trafficRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/traffic',
    name: 'reportTraffic',
    summary: 'Report calls, errors, tokens, cost and times over time. By default, the last 24 hours.',
    query: {
      ...{ interval: TrafficInterval, from: TrafficTime, to: TrafficTime, by: TrafficBy },
      ...{ key: UsageKey, model: UsageModel },
    },
    response: listOf(TrafficRow),
    handle: async ({ llm, query }) => {
      const { from, to, ...filters } = parseSettings(TrafficFilters, {
        ...{ interval: query('interval'), from: query('from'), to: query('to'), by: query('by') },
        ...{ key: query('key'), model: query('model') },
      })
      const rows = await llm[internals].traffic({
        ...filters,
        ...{
          from: from === undefined ? undefined : new Date(from),
          to: to === undefined ? undefined : new Date(to),
        },
      })
      return {
        data: rows.map(({ nanoUsd, firstTokenMs, durationMs, ...row }) => ({
          ...row,
          nanoUsd: `${nanoUsd}`,
          firstTokenMs: firstTokenMs ?? null,
          durationMs: durationMs ?? null,
        })),
      }
    },
  },
]
