/**
 * Checks the cost and the limits of a call, and lists the buckets and concurrency limits that the call needs.
 */
import { createHash } from 'node:crypto'
import { checkKeys, describeValue } from '../options/check.ts'
import type { LimitName } from './admission.ts'
import { type BucketSize, dayMs, maxDailyLimit, maxLevel, maxLimit, minuteMs } from './bucket.ts'
import type { Cost, EndUserLimits, InferenceLimits, Limits, Subject, WindowLimit } from './limits.ts'

export interface Demand {
  readonly buckets: readonly BucketDemand[]
  readonly concurrency: readonly ConcurrencyDemand[]
}
export interface BucketDemand extends BucketSize {
  readonly subject: string
  readonly name: LimitName
  readonly units: number
  readonly label: string | undefined
}
export interface ConcurrencyDemand {
  readonly subject: string
  readonly limit: number
  readonly label: string | undefined
}

export function toDemand(subjects: readonly Subject[], defaults: Limits, cost: Cost): Demand {
  checkCost(cost)
  const buckets: BucketDemand[] = []
  const concurrency: ConcurrencyDemand[] = []
  const ids = subjects.length > 1 ? new Set<string>() : undefined
  for (const { id, limits = defaults, label } of subjects) {
    if (ids?.has(id)) throw new TypeError('Expected subjects with different ids')
    ids?.add(id)
    if (typeof id !== 'string')
      throw new TypeError(`Expected the \`id\` of a subject to be a text, got ${describeValue(id)}`)
    checkSubjectLimits(limits)
    const subject = toStorableId(id)
    if (isWindowLimit(limits)) {
      const { limit, windowMs } = limits
      buckets.push({ subject, name: 'requests', limit, windowMs, units: cost.requests, label })
      continue
    }
    for (const [limitName, [name, windowMs]] of bucketLimits) {
      const limit = limits[limitName]
      if (limit !== undefined) buckets.push({ subject, name, limit, windowMs, units: cost[name] ?? 0, label })
    }
    const { concurrent } = limits
    if (concurrent !== undefined) concurrency.push({ subject, limit: concurrent, label })
  }
  return { buckets, concurrency }
}

/** The limits that have a bucket, with its name and its window. */
const bucketLimits = Object.entries({
  requestsPerMinute: ['requests', minuteMs],
  tokensPerMinute: ['tokens', minuteMs],
  inputTokensPerMinute: ['inputTokens', minuteMs],
  outputTokensPerMinute: ['outputTokens', minuteMs],
  tokensPerDay: ['tokens', dayMs],
}) as readonly [Exclude<keyof Limits, 'concurrent'>, [LimitName, number]][]

/** The cost that a status query checks, and the final cost of a released reservation. */
export const zeroCost: Cost = { requests: 0, tokens: 0 }

const isWindowLimit = (limits: Limits | WindowLimit): limits is WindowLimit =>
  typeof limits === 'object' && limits !== null && 'windowMs' in limits

function checkSubjectLimits(limits: Limits | WindowLimit): void {
  if (isWindowLimit(limits)) {
    checkKeys('limits.', limits, ['limit', 'windowMs'])
    checkWindowLimit(limits)
  } else checkLimits(limits)
}

/** Throws a `TypeError` that names the wrong option. @param group what precedes its name */
export function checkLimits(limits: Limits, group = 'limits.'): void {
  checkKeys(group, limits, Object.keys(maxLimits))
  for (const [name, max] of Object.entries(maxLimits))
    checkRange(group + name, limits[name as keyof Limits], 1, max)
}

const maxLimits: Readonly<Record<keyof Limits, number>> = {
  requestsPerMinute: maxLimit,
  tokensPerMinute: maxLimit,
  inputTokensPerMinute: maxLimit,
  outputTokensPerMinute: maxLimit,
  tokensPerDay: maxDailyLimit,
  concurrent: maxLimit,
}

/** Throws a `TypeError` that names the wrong option. @param group what precedes its name */
export function checkInferenceLimits(limits: InferenceLimits, group: string): void {
  checkKeys(group, limits, [...Object.keys(maxLimits), 'maxOutputTokens', 'perEndUser'])
  const { maxOutputTokens, perEndUser, ...rateLimits } = limits
  checkLimits(rateLimits, group)
  checkRange(`${group}maxOutputTokens`, maxOutputTokens, 1, maxUnits)
  if (perEndUser === undefined) return
  checkKeys(`${group}perEndUser.`, perEndUser, endUserLimitNames)
  checkLimits(perEndUser, `${group}perEndUser.`)
}

const endUserLimitNames = [
  'requestsPerMinute',
  'tokensPerMinute',
  'inputTokensPerMinute',
  'outputTokensPerMinute',
  'concurrent',
] satisfies (keyof EndUserLimits)[]

/** Throws a `TypeError` that names the wrong option. */
export function checkWindowLimit({ limit, windowMs }: WindowLimit): void {
  if (limit === undefined) throw new TypeError('Expected `limit` beside `windowMs`')
  checkRange('windowMs', windowMs, 1, maxWindowMs)
  checkRange('limit', limit, 1, Math.floor(maxLevel / windowMs))
}

/** 366 days. */
const maxWindowMs = 31_622_400_000

export function checkCost({ requests, tokens, inputTokens, outputTokens }: Cost): void {
  for (const [name, units] of Object.entries({ requests, tokens, inputTokens, outputTokens }))
    checkRange(name, units, 0, maxUnits)
}

/** Returns `a + sign * b`. */
export const addCost = (a: Cost, b: Cost, sign: 1 | -1 = 1): Required<Cost> => ({
  requests: a.requests + sign * b.requests,
  tokens: a.tokens + sign * b.tokens,
  inputTokens: (a.inputTokens ?? 0) + sign * (b.inputTokens ?? 0),
  outputTokens: (a.outputTokens ?? 0) + sign * (b.outputTokens ?? 0),
})

/**
 * The highest cost of one call, in requests or tokens. It is more than the context of any model. With a
 * window of a minute, the debt of a hundred such calls is still an exact double.
 */
const maxUnits = 1e9

export function checkRange(name: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return
  throw new TypeError(
    `Expected \`${name}\` to be a whole number from ${min} to ${max}, got ${value} (${typeof value})`,
  )
}

/**
 * Returns an id that every database can store as text: the id itself, or its hash if a database might reject
 * the id. Clients can influence ids, for example with megabytes of text or with NUL characters.
 */
export const toStorableId = (id: string): string =>
  id.length <= maxIdLength && !id.includes('\0') && id.isWellFormed()
    ? id
    : `sha256:${createHash('sha256').update(Buffer.from(id, 'utf16le')).digest('hex')}`

const maxIdLength = 200
