/** How limits stand, as Anthropic's API says it. Shape: Anthropic API reference, "Rate limits", "Response headers". */
import type { LimitStatus } from '../../errors.ts'

export function limitHeaders(limits: readonly LimitStatus[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const { name, limit, remaining, resetMs } of limits) {
    headers[`anthropic-ratelimit-${name}-limit`] = `${limit}`
    headers[`anthropic-ratelimit-${name}-remaining`] = `${remaining}`
    headers[`anthropic-ratelimit-${name}-reset`] = toTimestamp(Date.now() + resetMs)
  }
  return headers
}

/** In RFC 3339, in whole seconds, and not before it is so. */
const toTimestamp = (at: number): string =>
  new Date(Math.ceil(at / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
