/** Calls over time, from `GET /traffic`. */
import { keepPreviousData, useQuery } from '@tanstack/preact-query'
import { admin, read } from '../../api/client.ts'
import type { ResponseOf } from '../../api/types.ts'
import { type Interval, intervalStarts, type Range } from './ranges.ts'

/** The calls of one interval, or of one model or key in it. */
export type TrafficRow = ResponseOf<'reportTraffic'>['data'][number]

export interface Traffic {
  readonly by: 'model' | 'key' | undefined
  readonly interval: Interval
  /** The beginnings of all intervals, also of those without calls. */
  readonly times: readonly string[]
  readonly rows: readonly TrafficRow[]
}

export interface TrafficFilter {
  readonly model: string
  readonly key: string
}

const minuteMs = 60_000

/** Read again each minute, while the tab is visible. */
export const useTraffic = (range: Range, filter: TrafficFilter, by?: 'model' | 'key') =>
  useQuery({
    queryKey: ['traffic', range.id, filter, by],
    queryFn: ({ signal }) => fetchTraffic({ range, filter, by, signal }),
    placeholderData: keepPreviousData,
    staleTime: minuteMs,
    refetchInterval: minuteMs,
  })

async function fetchTraffic({
  range,
  filter: { model, key },
  by,
  signal,
}: {
  readonly range: Range
  readonly filter: TrafficFilter
  readonly by: 'model' | 'key' | undefined
  readonly signal: AbortSignal
}): Promise<Traffic> {
  const now = new Date()
  const interval = by === undefined ? range.interval : range.groupInterval
  const times = intervalStarts(range, interval, now)
  const query = {
    interval,
    from: times[0] ?? '',
    to: now.toISOString(),
    ...(by && { by }),
    ...(model && { model }),
    ...(key && { key }),
  }
  const { data } = await read(admin.GET('/traffic', { params: { query }, signal }))
  return { by, interval, times, rows: data }
}
