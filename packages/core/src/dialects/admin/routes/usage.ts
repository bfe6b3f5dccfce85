/** Routes of usage and cost. */
import { parseSettings } from '../../../accounts/keys/schema.ts'
import { maxPageSize } from '../../../accounts/page.ts'
import type * as usage from '../../../accounts/usage/report.ts'
import { attachment } from '../../../http/streams.ts'
import type { Llm } from '../../../llm.ts'
import { type AdminCall, type AdminRoute, parsePage, toPage } from '../route.ts'
import { After, Limit, pageOf } from '../schema/lists.ts'
import { Day, UsageBy, UsageKey, UsageModel, UsageOrder, UsageRow } from '../schema/usage.ts'

export const usageRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/usage',
    name: 'reportUsage',
    summary: 'Report usage and cost of a range of days, in UTC.',
    query: {
      ...{ by: UsageBy, from: Day, to: Day, key: UsageKey, model: UsageModel },
      ...{ order: UsageOrder, limit: Limit, after: After },
    },
    response: pageOf(UsageRow),
    handle: async ({ llm, query }) => {
      const parsed = parseUsageQuery(query)
      const rows = await llm.usage.report({ ...parsed, caller: query('key'), model: query('model') })
      return toUsagePage(rows, parsed)
    },
  },
  {
    method: 'GET',
    path: '/usage.csv',
    name: 'exportUsage',
    summary: 'Export a usage report as CSV, with the same filters as `/usage`, and all rows.',
    query: { by: UsageBy, from: Day, to: Day, key: UsageKey, model: UsageModel },
    response: 'text/csv',
    handle: async ({ llm, query, onError }) => {
      const { by, from, to } = parseUsageQuery(query)
      const filters = { by, from, to, caller: query('key'), model: query('model') }
      const { toCsv } = await import('../usage-csv.ts')
      const file = attachment(toCsv(pagesOf(llm, filters)), `usage-by-${by}.csv`, { onError })
      return { ...file, headers: { ...file.headers, 'content-type': 'text/csv; charset=utf-8' } }
    },
  },
]

async function* pagesOf(llm: Llm, query: usage.UsageQuery): AsyncGenerator<readonly usage.UsageRow[]> {
  for (let after: string | undefined; ; ) {
    const rows = await llm.usage.report({ ...query, after, limit: maxPageSize })
    yield rows
    if (rows.length < maxPageSize) return
    after = rows.at(-1)?.group
  }
}

export const parseUsageQuery = (query: AdminCall['query']) => ({
  by: parseSettings(UsageBy, query('by') ?? 'key'),
  order: parseSettings(UsageOrder, query('order') ?? 'group'),
  from: parseDay(query('from')),
  to: parseDay(query('to')),
  ...parsePage(query),
})

type ParsedUsageQuery = ReturnType<typeof parseUsageQuery>

export function toUsagePage(rows: readonly usage.UsageRow[], query: ParsedUsageQuery): object {
  const data = rows.map(toUsageRow)
  return query.order === 'cost' ? { data } : toPage(data, query, ({ group }) => group)
}

/** JSON has no bigints. */
const toUsageRow = ({ nanoUsd, batch, ...row }: usage.UsageRow) => ({
  ...row,
  nanoUsd: `${nanoUsd}`,
  batch: { ...batch, nanoUsd: `${batch.nanoUsd}` },
})

const parseDay = (text: string | undefined): Date | undefined => {
  const day = parseSettings(Day.optional(), text)
  return day === undefined ? undefined : new Date(day)
}
