/** Response headers for rate limits. */
import type { LimitStatus, LlmError } from '../errors.ts'
import { formatDuration } from '../units.ts'
import { toRetrySeconds, toWords } from './admission.ts'
import { minuteMs } from './bucket.ts'

export type HeaderMap = Readonly<Record<string, string>>

/** Returns OpenAI's `x-ratelimit-*` headers, for one limit of each name. */
export function limitHeaders(limits: readonly LimitStatus[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { name, limit, remaining, resetMs } of shortestWindows(limits)) {
    headers[headerNames[name].limit] = `${limit}`
    headers[headerNames[name].remaining] = `${remaining}`
    headers[headerNames[name].reset] = formatDuration(resetMs)
  }
  return headers
}

/**
 * Returns one status for each name: that with the shortest window. Headers without a window describe limits
 * per minute, so a limit per day must not replace these.
 */
export const shortestWindows = (limits: readonly LimitStatus[]): readonly LimitStatus[] =>
  limits.filter(
    (status) => !limits.some((other) => other.name === status.name && windowOf(other) < windowOf(status)),
  )

const windowOf = ({ windowMs = minuteMs }: LimitStatus): number => windowMs

const headerNamesOf = (name: string) => ({
  limit: `x-ratelimit-limit-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
  reset: `x-ratelimit-reset-${name}`,
})
const headerNames: Readonly<Record<LimitStatus['name'], ReturnType<typeof headerNamesOf>>> = {
  requests: headerNamesOf('requests'),
  tokens: headerNamesOf('tokens'),
  inputTokens: headerNamesOf('input-tokens'),
  outputTokens: headerNamesOf('output-tokens'),
}

/**
 * Returns all headers for the limits of a route: those of OpenAI, and those of
 * draft-ietf-httpapi-ratelimit-headers-08 with the policy names of express-rate-limit. They contain no
 * partition key, because it would be a hash of the key that identifies the client.
 */
export function routeLimitHeaders(limits: readonly LimitStatus[]): HeaderMap {
  const headers = limitHeaders(limits)
  let state = ''
  let policies = ''
  for (const { name, limit, remaining, resetMs, windowMs = minuteMs } of limits) {
    const separator = state === '' ? '' : ', '
    const policy = `"${limit}-${name === 'requests' ? '' : `${toWords(name, '-')}-`}in-${formatPolicyWindow(windowMs)}"`
    state += `${separator}${policy}; r=${remaining}; t=${Math.ceil(resetMs / 1_000)}`
    policies += `${separator}${policy}; q=${limit}; w=${Math.ceil(windowMs / 1_000)}`
  }
  if (limits.length > 0) {
    headers.ratelimit = state
    headers['ratelimit-policy'] = policies
  }
  return headers
}

/** Formats a window for a policy name: `30sec`, `15min`, `1hr`, `2hrs`, `1day`. */
function formatPolicyWindow(windowMs: number): string {
  if (windowMs < minuteMs) return `${windowMs / 1_000}sec`
  const minutes = windowMs / minuteMs
  if (minutes < 60) return `${minutes}min`
  const hours = minutes / 60
  if (hours < 24) return `${hours}hr${hours > 1 ? 's' : ''}`
  const days = hours / 24
  return `${days}day${days > 1 ? 's' : ''}`
}

/**
 * Returns the headers that tell a client when to retry. The SDKs of OpenAI and Anthropic wait and retry,
 * unless `x-should-retry` is false.
 */
export function retryHeaders({ code, details: { retryAfterMs } }: LlmError): HeaderMap {
  if (code === 'quota') return doNotRetry
  if (retryAfterMs === undefined) return {}
  const ms = Math.ceil(retryAfterMs)
  return {
    'retry-after': `${toRetrySeconds(ms)}`,
    'retry-after-ms': `${ms}`,
    ...(ms > maxRetryWaitMs && doNotRetry),
  }
}

const doNotRetry: HeaderMap = { 'x-should-retry': 'false' }

/**
 * The longest wait after which SDKs should retry. It is the default request timeout of the SDKs of OpenAI and
 * Anthropic.
 */
const maxRetryWaitMs = 600_000
