/** How long a model stays loaded, as Ollama's clients say it and as they are told. */
import { readDuration } from '../../units.ts'
import { shortly } from '../fields.ts'

/** What Go can say in nanoseconds: about 292 years. */
const longestMs = 2 ** 63 / 1e6

/** Seconds, or a duration with units: `"10m"`. In milliseconds; nothing where it is neither. */
export function toKeepAlive(value: unknown): number | 'forever' | undefined {
  const ms =
    typeof value === 'number' ? value * 1_000 : typeof value === 'string' ? readDuration(value) : undefined
  if (ms === undefined || (typeof value === 'string' && Math.abs(ms) > longestMs)) return undefined
  return ms < 0 ? 'forever' : Math.min(ms, longestMs)
}

/** Why it is none, as Go says it. */
export function keepAliveProblem(value: unknown): string {
  if (typeof value !== 'string') return `Unsupported type: '${goTypeOf(value)}'`
  const written = JSON.stringify(shortly(value))
  const [, unit, isOver] =
    /^[+-]?(?:[\d.]+(?:[nuµμm]?s|[mh]))*(?:[\d.]+(?:([^\d.]+)|($)))/.exec(shortly(value)) ?? []
  if (isOver !== undefined) return `time: missing unit in duration ${written}`
  if (unit !== undefined && !unitsOfGo.includes(unit))
    return `time: unknown unit ${JSON.stringify(unit)} in duration ${written}`
  return `time: invalid duration ${written}`
}

const unitsOfGo: readonly string[] = ['ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h']

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}'
  return typeof value === 'boolean' ? 'bool' : 'map[string]interface {}'
}

/** "Never" is a date that none of us will see. */
export const toExpiry = (expiresAt: Date | 'never'): string =>
  (expiresAt === 'never' ? new Date(Date.now() + longestMs) : expiresAt).toISOString()
