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
  /** Whether there may be more rows than the page reads. */
  readonly hasMore: boolean
}

/** The most expensive ones. All of them are in the CSV file. */
const maxRows = 200
const minuteMs = 60_000

export const useReport = (by: UsageBy, filter: UsageFilter) =>
  useQuery({
    queryKey: ['usage', 'report', by, filter],
    queryFn: ({ signal }) => fetchReport(by, filter, signal),
    placeholderData: keepPreviousData,
    staleTime: minuteMs,
  })

/** A report by day has one page: days that are more than a year old are months. */
async function fetchReport(by: UsageBy, filter: UsageFilter, signal: AbortSignal): Promise<UsageReport> {
  const query = queryOf(by, filter)
  if (by !== 'day') {
    query.set('order', 'cost')
    query.set('limit', `${maxRows}`)
  }
  const response = await request(`admin/usage?${query}`, { signal })
  const { data } = (await response.json()) as { data: readonly UsageRow[] }
  return { by, rows: data, hasMore: by !== 'day' && data.length >= maxRows }
}

/** The query of a report. The CSV file takes the same one. */
export function queryOf(by: UsageBy, { days, model, key }: UsageFilter): URLSearchParams {
  const query = new URLSearchParams({ by })
  for (const [name, value] of Object.entries({ ...days, model, key })) if (value) query.set(name, value)
  return query
}
