/** Routes of usage and cost. */
import { parseSettings } from '../../../accounts/keys/schema.ts'
import type * as usage from '../../../accounts/usage/report.ts'
import { type AdminCall, type AdminRoute, parsePage, toPage } from '../route.ts'
import { After, Limit, pageOf } from '../schema/lists.ts'
import { Day, UsageBy, UsageKey, UsageModel, UsageRow } from '../schema/usage.ts'

export const usageRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/usage',
    name: 'reportUsage',
    summary: 'Report usage and cost of a range of days, in UTC.',
    query: { by: UsageBy, from: Day, to: Day, key: UsageKey, model: UsageModel, limit: Limit, after: After },
    response: pageOf(UsageRow),
    handle: async ({ llm, query }) => {
      const parsed = parseUsageQuery(query)
      const rows = await llm.usage.report({ ...parsed, caller: query('key'), model: query('model') })
      return toPage(rows.map(toUsageRow), parsed, ({ group }) => group)
    },
  },
]

export const parseUsageQuery = (query: AdminCall['query']) => ({
  by: parseSettings(UsageBy, query('by') ?? 'key'),
  from: parseDay(query('from')),
  to: parseDay(query('to')),
  ...parsePage(query),
})

/** JSON has no bigints. */
export const toUsageRow = ({ nanoUsd, batch, ...row }: usage.UsageRow) => ({
  ...row,
  nanoUsd: `${nanoUsd}`,
  batch: { ...batch, nanoUsd: `${batch.nanoUsd}` },
})

const parseDay = (text: string | undefined): Date | undefined => {
  const day = parseSettings(Day.optional(), text)
  return day === undefined ? undefined : new Date(day)
}
