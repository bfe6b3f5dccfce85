/** How long a model stays loaded, as Ollama's clients say it and as they are told. */
import { readDuration } from '../../units.ts'

/** What Go can say in nanoseconds: about 292 years. */
const longestMs = 2 ** 63 / 1e6

/** Seconds, or a duration with units: `"10m"`. In milliseconds; nothing where it is neither. */
export function toKeepAlive(value: unknown): number | 'forever' | undefined {
  const ms =
    typeof value === 'number' ? value * 1_000 : typeof value === 'string' ? readDuration(value) : undefined
  if (ms === undefined || (typeof value === 'string' && Math.abs(ms) > longestMs)) return undefined
  return ms < 0 ? 'forever' : Math.min(ms, longestMs)
}

/** "Never" is a date that none of us will see. */
export const toExpiry = (expiresAt: Date | 'never'): string =>
  (expiresAt === 'never' ? new Date(Date.now() + longestMs) : expiresAt).toISOString()
