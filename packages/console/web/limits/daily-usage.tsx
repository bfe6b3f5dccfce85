/** Usage and cost of the last 30 days, by day. */
import { useQuery } from '@tanstack/preact-query'
import { useMemo } from 'preact/hooks'
import { request } from '../api/client.ts'
import type { ResponseOf } from '../api/types.ts'
import { Chart } from '../components/chart.tsx'
import { EmptyState, Loading } from '../components/empty-state.tsx'
import { ErrorMessage } from '../components/error-message.tsx'
import { Stat, Stats } from '../components/page.tsx'
import { Money } from '../components/text/money.tsx'
import { formatCompactUsd, formatUsd, toUsd } from '../format/money.ts'
import { formatCount } from '../format/numbers.ts'
import { fillDays, sumUsage } from './usage-days.ts'

export type UsageDay = ResponseOf<'reportUsage'>['data'][number]

export interface DailyUsageProps {
  readonly queryKey: readonly unknown[]
  /** `admin/usage` or `admin/me/usage`. */
  readonly url: string
  readonly filter?: Readonly<Record<string, string>>
}

const days = 30
/** While the tab is visible. */
const refreshMs = 10_000

export function DailyUsage({ queryKey, url, filter = {} }: DailyUsageProps) {
  const today = new Date().toISOString().slice(0, 10)
  const usage = useQuery({
    queryKey: [...queryKey, today],
    refetchInterval: refreshMs,
    queryFn: async ({ signal }): Promise<readonly UsageDay[]> => {
      const from = new Date(Date.parse(today) - (days - 1) * 86_400_000).toISOString().slice(0, 10)
      const query = new URLSearchParams({ by: 'day', from, ...filter })
      return ((await (await request(`${url}?${query}`, { signal })).json()) as { data: UsageDay[] }).data
    },
  })
  if (usage.error) return <ErrorMessage error={usage.error} onRetry={() => void usage.refetch()} />
  if (usage.data === undefined) return <Loading />
  if (usage.data.length === 0) {
    return (
      <EmptyState title="No calls in the last 30 days" icon="usage">
        <p>Usage appears here a few seconds after the first call.</p>
      </EmptyState>
    )
  }
  return <UsageOfDays rows={usage.data} today={today} />
}

function UsageOfDays({ rows, today }: { readonly rows: readonly UsageDay[]; readonly today: string }) {
  const sums = sumUsage(rows)
  const { times, series } = useMemo(() => {
    const filled = fillDays(rows, today, days)
    return {
      times: filled.map(({ day }) => `${day}T00:00:00Z`),
      series: [
        {
          name: 'Cost',
          values: filled.map(({ nanoUsd }) => toUsd(nanoUsd)),
          textAt: (index: number) => formatUsd(filled[index]?.nanoUsd ?? 0n),
        },
      ],
    }
  }, [rows, today])
  return (
    <>
      <Stats>
        <Stat name="Calls">{formatCount(sums.calls)}</Stat>
        <Stat name="Input tokens" note={`${formatCount(sums.cachedInput)} from the cache`}>
          {formatCount(sums.input)}
        </Stat>
        <Stat name="Output tokens">{formatCount(sums.output)}</Stat>
        <Stat name="Cost">
          <Money nanoUsd={sums.nanoUsd} />
        </Stat>
      </Stats>
      <Chart title="Cost per day" times={times} series={series} kind="bars" formatAxis={formatCompactUsd} />
    </>
  )
}
