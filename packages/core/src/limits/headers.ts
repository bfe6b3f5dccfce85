/** What clients are told of limits, in headers. */
import type { LimitStatus, LlmError } from '../errors.ts'
import { formatDuration } from '../units.ts'
import { toRetrySeconds } from './admission.ts'

export type HeaderMap = Readonly<Record<string, string>>

/** By the names that OpenAI has for them, which know requests and tokens; those of the IETF are a draft still, and know one limit. */
export function limitHeaders(limits: readonly LimitStatus[]): HeaderMap {
  const headers: Record<string, string> = {}
  for (const { name, limit, remaining, resetMs } of limits) {
    headers[headerNames[name].limit] = `${limit}`
    headers[headerNames[name].remaining] = `${remaining}`
    headers[headerNames[name].reset] = formatDuration(resetMs)
  }
  return headers
}

const headerNamesOf = (name: LimitStatus['name']) => ({
  limit: `x-ratelimit-limit-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
  reset: `x-ratelimit-reset-${name}`,
})
const headerNames = { requests: headerNamesOf('requests'), tokens: headerNamesOf('tokens') }

/** When to try again. The SDKs of OpenAI and Anthropic wait as they are told, however long, unless they are told not to. */
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

/** So long these SDKs wait for an answer, and nobody longer for the next try. */
const maxRetryWaitMs = 600_000
