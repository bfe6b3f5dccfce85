/** How much of its limits a key has used. */
import type { LimitStatus } from '../api/types.ts'
import { Bar } from '../components/bar.tsx'
import { formatCount } from '../format/numbers.ts'
import { formatDuration } from '../format/time.ts'

export const LimitMeters = ({ limits }: { readonly limits: readonly LimitStatus[] }) => (
  <ul class="meters">
    {limits.map((status) => (
      <li key={`${status.name} ${status.windowMs}`} class="bar-with-text">
        <p class="bar-texts">
          <span>{nameOf(status)}</span>
          <span class="number">
            {formatCount(status.remaining)} of {formatCount(status.limit)} left
          </span>
        </p>
        <Bar
          label={nameOf(status)}
          value={1 - status.remaining / status.limit}
          text={`${formatCount(status.limit - status.remaining)} of ${formatCount(status.limit)} used`}
        />
        <p class="muted">
          {status.resetMs === 0 ? 'Unused' : `Unused again in ${formatReset(status.resetMs)}`}
        </p>
      </li>
    ))}
  </ul>
)

/** Milliseconds would change before they are read. */
const formatReset = (ms: number): string =>
  ms < secondMs ? 'less than a second' : formatDuration(Math.ceil(ms / secondMs) * secondMs)

const secondMs = 1_000

const names = {
  requests: 'Requests',
  tokens: 'Tokens',
  inputTokens: 'Input tokens',
  outputTokens: 'Output tokens',
} as const

const minuteMs = 60_000
const dayMs = 86_400_000

const nameOf = ({ name, windowMs = minuteMs }: LimitStatus): string =>
  `${names[name]} per ${windowMs === dayMs ? 'day' : windowMs === minuteMs ? 'minute' : formatDuration(windowMs)}`
