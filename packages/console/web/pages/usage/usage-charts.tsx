/** Sums of a report, and its cost and tokens by day. */
import { useMemo } from 'preact/hooks'
import { Chart } from '../../components/chart.tsx'
import { Stat, Stats } from '../../components/page.tsx'
import { LargeMoney } from '../../components/text/money.tsx'
import { formatCompactUsd, formatUsd, toUsd } from '../../format/money.ts'
import { formatCompact, formatCount, formatPercent } from '../../format/numbers.ts'
import { sumUsage } from '../../limits/usage-days.ts'
import { type DayRange, fillReport } from './date-ranges.ts'
import type { UsageRow } from './report.ts'

export function UsageSums({ rows }: { readonly rows: readonly UsageRow[] }) {
  const sums = sumUsage(rows)
  const inBatches = rows.reduce((total, { batch }) => total + BigInt(batch.nanoUsd), 0n)
  return (
    <Stats>
      <Stat name="Cost" note={inBatches > 0n ? `${formatUsd(inBatches)} in batches` : undefined}>
        <LargeMoney nanoUsd={sums.nanoUsd} />
      </Stat>
      <Stat name="Calls">{formatCount(sums.calls)}</Stat>
      <Stat
        name="Input tokens"
        note={sums.input > 0 ? `${formatPercent(sums.cachedInput / sums.input)} from the cache` : undefined}
      >
        <span title={formatCount(sums.input)}>{formatCompact(sums.input)}</span>
      </Stat>
      <Stat name="Output tokens">
        <span title={formatCount(sums.output)}>{formatCompact(sums.output)}</span>
      </Stat>
    </Stats>
  )
}

export function UsageCharts({ rows, days }: { readonly rows: readonly UsageRow[]; readonly days: DayRange }) {
  const { times, cost, tokens } = useMemo(() => {
    const filled = fillReport(rows, days)
    const series = (name: string, pick: (row: UsageRow) => number) => ({
      name,
      values: filled.map(({ row }) => (row ? pick(row) : 0)),
      textAt: (index: number) => {
        const row = filled[index]?.row
        return formatCount(row ? pick(row) : 0)
      },
    })
    return {
      times: filled.map(({ day }) => day),
      cost: [
        {
          ...series('Cost', ({ nanoUsd }) => toUsd(nanoUsd)),
          textAt: (index: number) => formatUsd(filled[index]?.row?.nanoUsd ?? 0n),
        },
      ],
      tokens: [
        series('Input, evaluated', ({ tokens }) => tokens.input + tokens.cacheWrite),
        series('Input, from the cache', ({ tokens }) => tokens.cachedInput),
        series('Output', ({ tokens }) => tokens.output),
      ],
    }
  }, [rows, days])
  return (
    <div class="charts">
      <Chart title="Cost" times={times} series={cost} kind="bars" formatAxis={formatCompactUsd} />
      <Chart title="Tokens" times={times} series={tokens} kind="stacked-bars" />
    </div>
  )
}
