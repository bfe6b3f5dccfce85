/** Spending of a key, and its limit. */
import type { Spending } from '../api/types.ts'
import { Bar } from '../components/bar.tsx'
import { Money } from '../components/text/money.tsx'
import { Time } from '../components/text/time.tsx'
import { formatUsd, fraction } from '../format/money.ts'
import { periodNames } from './spending-text.ts'

export interface SpendingBarProps {
  /** Name of the key, for screen readers. */
  readonly name: string
  readonly spending: Spending
  /** Whether to say when the period ends. */
  readonly isDetailed?: boolean
}

export const SpendingBar = ({ name, spending, isDetailed = false }: SpendingBarProps) => {
  const { nanoUsd, limitNanoUsd, period, resetsAt } = spending
  return (
    <div class="bar-with-text">
      <p>
        <Money nanoUsd={nanoUsd} />{' '}
        <span class="muted number">
          of {formatUsd(limitNanoUsd)} {periodNames[period]}
        </span>
      </p>
      <Bar
        label={`Spending of ${name}`}
        value={fraction(nanoUsd, limitNanoUsd)}
        text={`${formatUsd(nanoUsd)} of ${formatUsd(limitNanoUsd)} ${periodNames[period]}`}
      />
      {isDetailed && (
        <p class="muted">
          {resetsAt === undefined ? (
            'Never resets.'
          ) : (
            <>
              Resets <Time at={resetsAt} />.
            </>
          )}
        </p>
      )}
    </div>
  )
}
