/** What clients are told of limits, in headers. */
import type { LimitStatus, LlmError } from '../errors.ts'
import { writeDuration } from '../units.ts'
import { toSeconds } from './admission.ts'

export type Headers = Readonly<Record<string, string>>

/** By the names that OpenAI has for them, which know requests and tokens; those of the IETF are a draft still, and know one limit. */
export function limitHeaders(limits: readonly LimitStatus[]): Headers {
  const headers: Record<string, string> = {}
  for (const { name, limit, remaining, resetMs } of limits) {
    headers[names[name].limit] = `${limit}`
    headers[names[name].remaining] = `${remaining}`
    headers[names[name].reset] = writeDuration(resetMs)
  }
  return headers
}

const namesOf = (name: LimitStatus['name']) => ({
  limit: `x-ratelimit-limit-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
  reset: `x-ratelimit-reset-${name}`,
})
const names = { requests: namesOf('requests'), tokens: namesOf('tokens') }

/** When to try again. The SDKs of OpenAI and Anthropic wait as they are told, however long, unless they are told not to. */
export function retryHeaders({ code, details: { retryAfterMs } }: LlmError): Headers {
  if (code === 'quota') return notAgain
  if (retryAfterMs === undefined) return {}
  const ms = Math.ceil(retryAfterMs)
  return {
    'retry-after': `${toSeconds(ms)}`,
    'retry-after-ms': `${ms}`,
    ...(ms > longestWaitMs && notAgain),
  }
}

const notAgain: Headers = { 'x-should-retry': 'false' }

/** So long these SDKs wait for an answer, and nobody longer for the next try. */
const longestWaitMs = 600_000
