/** A time in the viewer's zone. */
import { useEffect, useState } from 'preact/hooks'
import { formatFullTime, formatRelative, formatSeconds, formatTime } from '../../format/time.ts'

export interface TimeProps {
  /** ISO string in UTC. */
  readonly at: string
  /** Whether to show the distance from now, such as `3 minutes ago`. */
  readonly isRelative?: boolean
  /** Whether to show the seconds, where several entries have the same minute. */
  readonly hasSeconds?: boolean
}

export function Time({ at, isRelative = false, hasSeconds = false }: TimeProps) {
  const now = useNow(isRelative)
  const date = new Date(at)
  return (
    <time dateTime={at} title={formatFullTime(date)}>
      {isRelative ? formatRelative(date, now) : hasSeconds ? formatSeconds(date, now) : formatTime(date, now)}
    </time>
  )
}

/** The current time, updated each half minute. */
function useNow(isUpdated: boolean): Date {
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    if (!isUpdated) return undefined
    const timer = setInterval(() => setNow(new Date()), 30_000)
    return () => clearInterval(timer)
  }, [isUpdated])
  return now
}
