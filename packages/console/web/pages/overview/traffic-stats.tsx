/** The sums of a range. */
import { Stat, Stats } from '../../components/page.tsx'
import { LargeMoney } from '../../components/text/money.tsx'
import { formatCompact, formatCount, formatPercent } from '../../format/numbers.ts'
import type { Traffic } from './traffic.ts'
import { share, sumTraffic } from './traffic-sums.ts'

export function TrafficStats({ traffic }: { readonly traffic: Traffic }) {
  const sums = sumTraffic(traffic.rows)
  return (
    <Stats>
      <Stat name="Calls">{formatCount(sums.calls)}</Stat>
      <Stat name="Errors" note={percentOf(share(sums.errors, sums.calls), 'of the calls')}>
        {formatCount(sums.errors)}
      </Stat>
      <Stat
        name="Input tokens"
        note={percentOf(share(sums.cachedInputTokens, sums.inputTokens), 'from the cache')}
      >
        <span title={formatCount(sums.inputTokens)}>{formatCompact(sums.inputTokens)}</span>
      </Stat>
      <Stat name="Output tokens">
        <span title={formatCount(sums.outputTokens)}>{formatCompact(sums.outputTokens)}</span>
      </Stat>
      <Stat name="Cost">
        <LargeMoney nanoUsd={sums.nanoUsd} />
      </Stat>
    </Stats>
  )
}

const percentOf = (part: number | undefined, text: string): string | undefined =>
  part === undefined ? undefined : `${formatPercent(part)} ${text}`
