/** What the charts measure, and how its values read. */
import { formatCompactUsd, formatUsd, toUsd } from '../../format/money.ts'
import { formatCompact, formatCount, formatPercent } from '../../format/numbers.ts'
import { formatDuration } from '../../format/time.ts'
import type { Measure, RowMeasure } from './chart-series.ts'
import { share } from './traffic-sums.ts'

const count = (value: Measure['value']): Measure => ({
  value,
  text: (sums) => formatCount(value(sums) ?? 0),
})

export const calls = count(({ calls }) => calls)
export const successes = count(({ calls, errors }) => calls - errors)
export const errors = count(({ errors }) => errors)
export const tokens = count(({ inputTokens, outputTokens }) => inputTokens + outputTokens)
export const outputTokens = count(({ outputTokens }) => outputTokens)
export const cachedTokens = count(({ cachedInputTokens }) => cachedInputTokens)
export const evaluatedTokens = count(({ inputTokens, cachedInputTokens }) => inputTokens - cachedInputTokens)

export const cost: Measure = {
  value: ({ nanoUsd }) => toUsd(nanoUsd),
  text: ({ nanoUsd }) => formatUsd(nanoUsd),
}

export const cacheHits: Measure = {
  value: ({ cachedInputTokens, inputTokens }) => share(cachedInputTokens, inputTokens),
  text: ({ cachedInputTokens, inputTokens }) =>
    inputTokens === 0
      ? '–'
      : `${formatPercent(cachedInputTokens / inputTokens)} of ${formatCount(inputTokens)} tokens`,
}

export const latency = (name: 'firstTokenMs' | 'durationMs', percentile: 'p50' | 'p95'): RowMeasure => ({
  value: (row) => row[name]?.[percentile],
  text: (row) => {
    const ms = row[name]?.[percentile]
    return ms === undefined ? '–' : formatDuration(ms)
  },
})

/** Texts of the vertical axis, where the room is small. */
export const axisOf = {
  count: formatCompact,
  money: formatCompactUsd,
  percent: formatPercent,
  duration: formatDuration,
} as const
