/** Compares two requests, and describes where they differ. */
import { formatFieldPath } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'

export interface Difference {
  readonly path: readonly PropertyKey[]
  /** Undefined if this side has no value. */
  readonly recorded: unknown
  readonly got: unknown
}

/** Compares two JSON values, field by field. A missing object or list is one difference. */
export function findDifferences(
  recorded: unknown,
  got: unknown,
  path: readonly PropertyKey[] = [],
): readonly Difference[] {
  if (Array.isArray(recorded) && Array.isArray(got)) {
    const length = Math.max(recorded.length, got.length)
    return Array.from({ length }).flatMap((_, index) =>
      findDifferences(recorded[index], got[index], [...path, index]),
    )
  }
  if (isRecord(recorded) && isRecord(got)) {
    const keys = [...new Set([...Object.keys(recorded), ...Object.keys(got)])]
    return keys.flatMap((key) => findDifferences(recorded[key], got[key], [...path, key]))
  }
  return JSON.stringify(recorded) === JSON.stringify(got) ? [] : [{ path, recorded, got }]
}

/** How far two requests are apart. Texts with the same beginning or end are nearer than other texts. */
export const measureDistance = (differences: readonly Difference[]): number =>
  differences.reduce((sum, { recorded, got }) => sum + 1 - sharedPart(recorded, got), 0)

/** Share of two texts that is equal at their beginning and end, from 0 to 0.9. */
function sharedPart(a: unknown, b: unknown): number {
  if (typeof a !== 'string' || typeof b !== 'string') return 0
  const start = commonPrefixLength(a, b)
  const longest = Math.min(a.length, b.length) - start
  let end = 0
  while (end < longest && a.at(-1 - end) === b.at(-1 - end)) end++
  return (0.9 * (start + end)) / Math.max(a.length, b.length)
}

function commonPrefixLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length++
  return length
}

/** Formats one difference: `maxTokens: recorded 20, got 30`. */
export function describeDifference({ path, recorded, got }: Difference): string {
  const field = path.length > 0 ? formatFieldPath(path) : 'request'
  const from = typeof recorded === 'string' && typeof got === 'string' ? commonPrefixLength(recorded, got) : 0
  return `${field}: recorded ${shorten(recorded, from)}, got ${shorten(got, from)}`
}

/** Longest value in a message, in characters. */
const maxLength = 80
/** Characters of a text before its first difference. */
const lead = 20

/** @param from position of the first difference in a text */
function shorten(value: unknown, from: number): string {
  if (value === undefined) return 'nothing'
  if (typeof value !== 'string') {
    const json = JSON.stringify(value)
    return json.length > maxLength ? `${json.slice(0, maxLength).toWellFormed()}…` : json
  }
  const start = value.length > maxLength ? Math.max(0, from - lead) : 0
  const part = JSON.stringify(value.slice(start, start + maxLength))
  return `${start > 0 ? '…' : ''}${part}${start + maxLength < value.length ? '…' : ''}`
}
