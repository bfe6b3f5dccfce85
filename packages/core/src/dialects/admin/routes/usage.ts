/** Routes of usage and cost. */
import { parseSettings } from '../../../accounts/keys/schema.ts'
import { type AdminRoute, parsePage, toPage } from '../route.ts'
import { After, Limit, pageOf } from '../schema/lists.ts'
import { Day, UsageBy, UsageRow } from '../schema/usage.ts'

export const usageRoutes: readonly AdminRoute[] = [
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
]

const parseDay = (text: string | undefined): Date | undefined => {
  const day = parseSettings(Day.optional(), text)
  return day === undefined ? undefined : new Date(day)
}
