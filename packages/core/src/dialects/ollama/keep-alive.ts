/** Parses and renders Ollama's keep-alive. */
import { parseDuration } from '../../units.ts'
import { truncateForError } from '../fields.ts'

/** Go's longest duration, 2^63 ns: about 292 years. */
const maxDurationMs = 2 ** 63 / 1e6

/** Parses seconds, or a duration such as `"10m"`, to milliseconds. Returns `undefined` for invalid values. */
export function toKeepAlive(value: unknown): number | 'forever' | undefined {
  const ms =
    typeof value === 'number' ? value * 1_000 : typeof value === 'string' ? parseDuration(value) : undefined
  if (ms === undefined || (typeof value === 'string' && Math.abs(ms) > maxDurationMs)) return undefined
  return ms < 0 ? 'forever' : Math.min(ms, maxDurationMs)
}

/** Describes an invalid keep-alive with Go's error message. */
export function describeKeepAliveError(value: unknown): string {
  if (typeof value !== 'string') return `Unsupported type: '${goTypeOf(value)}'`
  const quoted = JSON.stringify(truncateForError(value))
  const [, unit, isOver] =
    /^[+-]?(?:[\d.]+(?:[nuµμm]?s|[mh]))*(?:[\d.]+(?:([^\d.]+)|($)))/.exec(truncateForError(value)) ?? []
  if (isOver !== undefined) return `time: missing unit in duration ${quoted}`
  if (unit !== undefined && !goUnits.includes(unit))
    return `time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`
  return `time: invalid duration ${quoted}`
}

const goUnits: readonly string[] = ['ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h']

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}'
  return typeof value === 'boolean' ? 'bool' : 'map[string]interface {}'
}

/** Renders "never" as a date about 292 years ahead. */
export const toExpiry = (expiresAt: Date | 'never'): string =>
  (expiresAt === 'never' ? new Date(Date.now() + maxDurationMs) : expiresAt).toISOString()
