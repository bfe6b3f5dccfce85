/** Reads reports of usage. */
import { keepPreviousData, useQuery } from '@tanstack/preact-query'
import { request } from '../../api/client.ts'
import type { ResponseOf } from '../../api/types.ts'
import type { DayRange } from './date-ranges.ts'

export type UsageRow = ResponseOf<'reportUsage'>['data'][number]
export type UsageBy = 'key' | 'model' | 'tenant' | 'day'

export interface UsageFilter {
  readonly days: DayRange
  readonly model: string
  readonly key: string
}

export interface UsageReport {
  readonly by: UsageBy
  readonly rows: readonly UsageRow[]
  /** Whether there are more rows than the page reads. */
  readonly hasMore: boolean
}

/** Enough for the keys of a large app. All of them are in the CSV file. */
const maxRows = 10_000
const minuteMs = 60_000

export const useReport = (by: UsageBy, filter: UsageFilter) =>
  useQuery({
    queryKey: ['usage', 'report', by, filter],
    queryFn: ({ signal }) => fetchReport(by, filter, signal),
    placeholderData: keepPreviousData,
    staleTime: minuteMs,
  })

async function fetchReport(by: UsageBy, filter: UsageFilter, signal: AbortSignal): Promise<UsageReport> {
  const rows: UsageRow[] = []
  let after: string | undefined
  do {
    const response = await request(`admin/usage?${queryOf(by, filter, after)}`, { signal })
    const page = (await response.json()) as { data: readonly UsageRow[]; next?: string }
    rows.push(...page.data)
    after = page.next
  } while (after !== undefined && rows.length < maxRows)
  return { by, rows, hasMore: after !== undefined }
}

/** The query of a report. The CSV file takes the same one. */
export function queryOf(by: UsageBy, { days, model, key }: UsageFilter, after = ''): URLSearchParams {
  const query = new URLSearchParams({ by })
  for (const [name, value] of Object.entries({ ...days, model, key, after }))
    if (value) query.set(name, value)
  return query
}
