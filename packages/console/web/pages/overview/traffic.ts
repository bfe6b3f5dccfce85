/** Calls over time, from `GET /traffic`. */
import { keepPreviousData, useQuery } from '@tanstack/preact-query'
import { request } from '../../api/client.ts'
import { type Interval, intervalStarts, type Range } from './ranges.ts'

export interface Percentiles {
  readonly p50: number
  readonly p95: number
}

/** The calls of one interval, or of one model or key in it. */
export interface TrafficRow {
  /** Beginning of the interval. */
  readonly at: string
  /** Name of the model, or id of the key. */
  readonly group?: string
  /** Name of the key. */
  readonly name?: string
  readonly calls: number
  readonly errors: number
  /** All input tokens, from the cache or not. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly nanoUsd: string
  readonly firstTokenMs: Percentiles | null
  readonly durationMs: Percentiles | null
}

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
  const query = new URLSearchParams({ interval, from: times[0] ?? '', to: now.toISOString() })
  for (const [name, value] of Object.entries({ by, model, key })) if (value) query.set(name, value)
  const response = await request(`admin/traffic?${query}`, { signal })
  const { data } = (await response.json()) as { data: readonly TrafficRow[] }
  return { by, interval, times, rows: data }
}
