/** Rate limit headers. Shape: Anthropic API reference, "Rate limits", "Response headers". */
import type { LimitStatus } from '../../errors.ts'
import { toWords } from '../../limits/admission.ts'
import { shortestWindows } from '../../limits/headers.ts'

export function limitHeaders(limits: readonly LimitStatus[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const { name, limit, remaining, resetMs } of shortestWindows(limits)) {
    const prefix = `anthropic-ratelimit-${toWords(name, '-')}`
    headers[`${prefix}-limit`] = `${limit}`
    headers[`${prefix}-remaining`] = `${remaining}`
    headers[`${prefix}-reset`] = toTimestamp(Date.now() + resetMs)
  }
  return headers
}

/** RFC 3339 timestamp in whole seconds, rounded up so that it is not too early. */
const toTimestamp = (at: number): string =>
  new Date(Math.ceil(at / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
