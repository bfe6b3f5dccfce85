/** Converts the rate limit keys of requests to subjects of the limiter. */
import { describeValue } from '../options/check.ts'
import type { Limits, Subject, WindowLimit } from './limits.ts'

export type RateLimitKey = string | number | bigint | Subject | null | undefined

type AnyLimits = Limits | WindowLimit | undefined

interface KeyContext {
  /** Prefix of the subject's id, if the key brings no limits. */
  readonly prefix: string
  /** Limits of the subject, if the key brings no limits. */
  readonly limits: AnyLimits
  addressKey(): string
}

export const keysToSubjects = (
  keys: RateLimitKey | readonly RateLimitKey[],
  context: KeyContext,
): readonly Subject[] => [keys].flat().map((key) => toSubject(key, context))

function toSubject(key: RateLimitKey, { prefix, limits, addressKey }: KeyContext): Subject {
  const { id, limits: own, label } = isSubject(key) ? key : { id: key }
  if (id === undefined || id === null || id === '')
    return { id: (own ? keyPrefix(undefined, own) : prefix) + addressKey(), limits: own ?? limits, label }
  return own ? { id: toId(id), limits: own, label } : { id: prefix + toId(id), limits, label }
}

/**
 * Returns the prefix for the subject ids of a route. Routes with different names or limits have different
 * prefixes, and count separately.
 */
export function keyPrefix(name: string | undefined, limits: AnyLimits): string {
  if (name !== undefined) return `${name} `
  if (!limits) return ''
  if ('windowMs' in limits) return `[${limits.limit}/${limits.windowMs}] `
  const { requestsPerMinute = '', tokensPerMinute = '', concurrent = '', tokensPerDay } = limits
  // The prefix is stored. So it keeps its form for limits without `tokensPerDay`.
  const daily = tokensPerDay === undefined ? '' : `,${tokensPerDay}`
  return `[${requestsPerMinute},${tokensPerMinute},${concurrent}${daily}] `
}

const isSubject = (key: RateLimitKey): key is Subject =>
  typeof key === 'object' && key !== null && 'id' in key

function toId(id: unknown): string {
  if (typeof id === 'string') return id
  if (typeof id === 'bigint' || (typeof id === 'number' && Number.isFinite(id))) return String(id)
  throw new TypeError(
    `Expected \`keyGenerator\` to return a text, a number or { id, limits }, got ${describeValue(id)}`,
  )
}
