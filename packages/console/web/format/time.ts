/** Times in the viewer's zone and locale. */

const minutes = { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } as const
const seconds = { ...minutes, second: '2-digit' } as const
const short = new Intl.DateTimeFormat(undefined, minutes)
const shortWithSeconds = new Intl.DateTimeFormat(undefined, seconds)
const yearWithSeconds = new Intl.DateTimeFormat(undefined, { year: 'numeric', ...seconds })
const shortWithYear = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric' })
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })
const utcDay = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'long' })

/** With the time of the day within half a year, else with the year. */
export function formatTime(at: Date, now = new Date()): string {
  return (isNear(at, now) ? short : shortWithYear).format(at)
}

/** With seconds, and beyond half a year also with the year. */
export const formatSeconds = (at: Date, now = new Date()): string =>
  (isNear(at, now) ? shortWithSeconds : yearWithSeconds).format(at)

const isNear = (at: Date, now: Date): boolean => Math.abs(at.getTime() - now.getTime()) < 180 * dayMs

/** A day of the server, which counts days in UTC. @param at such as `2026-03-01`, or its beginning */
export const formatUtcDay = (at: string): string => utcDay.format(new Date(at))

/** With weekday, seconds and time zone. */
export const formatFullTime = (at: Date): string => full.format(at)

/** The distance from now in the largest unit that fits, such as `3 minutes ago`. */
export function formatRelative(at: Date, now = new Date()): string {
  const ms = at.getTime() - now.getTime()
  const [unit, unitMs] = units.find(([, size]) => Math.abs(ms) >= size) ?? (['second', 1_000] as const)
  return relative.format(Math.trunc(ms / unitMs), unit)
}

const dayMs = 86_400_000
const units = [
  ['year', 365 * dayMs],
  ['month', 30 * dayMs],
  ['day', dayMs],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** A duration with the two largest units, such as `1 h 5 min`, and with milliseconds below ten seconds. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ]
  const first = parts.findIndex(([value]) => value > 0)
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')
}
