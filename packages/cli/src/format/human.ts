/** Formats sizes and times for people, like `format/` in Ollama. */

const units = ['B', 'KB', 'MB', 'GB', 'TB']

/** Decimal units: `3.9 MB`, `71 MB`. */
export function humanBytes(bytes: number): string {
  let [value, unit] = [bytes, 0]
  for (; value >= 1_000 && unit < units.length - 1; unit++) value /= 1_000
  const text = value >= 10 || Number.isInteger(value) ? Math.trunc(value) : value.toFixed(1)
  return `${text} ${units[unit]}`
}

/** `4 minutes from now`, `2 weeks ago`. */
export function humanTime(date: string, now = Date.now()): string {
  const ms = Date.parse(date) - now
  if (ms > foreverMs) return 'Forever'
  return ms < 0 ? `${humanDuration(-ms)} ago` : `${humanDuration(ms)} from now`
}

/**
 * A date counts as forever when it is more than this time ahead. Models that are never unloaded have a date
 * centuries ahead.
 */
const foreverMs = 20 * 365 * 24 * 3_600_000

function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1_000)
  if (seconds < 1) return 'Less than a second'
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`
  const minutes = Math.trunc(seconds / 60)
  if (minutes < 60) return minutes === 1 ? 'About a minute' : `${minutes} minutes`
  const hours = Math.round(minutes / 60)
  if (hours < 48) return hours === 1 ? 'About an hour' : `${hours} hours`
  const [days, weeks, months, years] = [24, 24 * 7, 24 * 30, 24 * 365].map((one) => Math.trunc(hours / one))
  if (hours < 24 * 14) return `${days} days`
  if (hours < 24 * 60) return `${weeks} weeks`
  return hours < 24 * 730 ? `${months} months` : `${years} years`
}

/** `312ms`, `4.2s`, `3m7s`. */
export function shortDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : `${seconds}s`
  return `${Math.trunc(seconds / 60)}m${seconds % 60}s`
}
