/** Parses byte sizes and durations with units, as options contain them. */

/** Bytes, or a number with a unit: `'32mb'`. 1 kb is 1,024 bytes. */
export type ByteSize = number | `${number}${'kb' | 'mb' | 'gb'}`

const byteUnits = { kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }

/**
 * Returns a size in bytes: `'1kb'` is 1,024. Throws a `TypeError` for a text without a unit, and for a negative
 * number.
 */
export function toBytes(size: ByteSize): number {
  if (typeof size === 'number' && size >= 0 && Number.isFinite(size)) return size
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(kb|mb|gb)$/.exec(String(size).toLowerCase()) ?? []
  if (!amount || !unit)
    throw new TypeError(`Expected a byte size such as '32mb' or a number, got '${size}' (${typeof size})`)
  return Number(amount) * byteUnits[unit as keyof typeof byteUnits]
}

/** Milliseconds, or a number with a unit: `'5m'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h'}`

const msUnits: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

export function toMs(duration: Duration): number {
  const ms = typeof duration === 'number' ? duration : parseDuration(String(duration))
  if (ms !== undefined && ms >= 0 && Number.isFinite(ms)) return ms
  throw new TypeError(
    `Expected a duration such as '5m' or a number of milliseconds, got '${duration}' (${typeof duration})`,
  )
}

/**
 * Parses a duration in Go's form (`1h30m`, `1.5s`, `-1m`, `0`) into milliseconds. Returns `undefined` for
 * other texts.
 */
export function parseDuration(text: string): number | undefined {
  if (text.length > maxDurationLength) return undefined
  const [, sign, rest] = /^([+-]?)(0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.exec(text) ?? []
  if (rest === undefined) return undefined
  const ms = [...rest.matchAll(/([\d.]+)([a-zµμ]+)/g)].reduce(
    (sum, [, amount, unit = '']) => sum + Number(amount) * (msUnits[unit] ?? 0),
    0,
  )
  return sign === '-' ? 0 - ms : ms
}

/** Formats a duration in Go's form: `1h30m0s`, `1.5s`, `12ms`. @param ms a whole number from 0 on */
export function formatDuration(ms: number): string {
  if (ms > 0 && ms < 1_000) return `${ms}ms`
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60]
  const seconds = `${(ms % 60_000) / 1_000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}

/** In characters. A client may send a text of megabytes. */
const maxDurationLength = 100
