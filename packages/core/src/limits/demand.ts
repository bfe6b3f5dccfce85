/** What a call asks of its limits, checked: of which buckets how much, and where it is one of those that run. */
import { createHash } from 'node:crypto'
import { checkKeys, describeValue } from '../options/check.ts'
import type { LimitName } from './admission.ts'
import { maxLimit } from './bucket.ts'
import type { Cost, Limits, Subject } from './limits.ts'

export interface Demand {
  readonly buckets: readonly BucketDemand[]
  readonly concurrency: readonly ConcurrencyDemand[]
}
export interface BucketDemand {
  readonly subject: string
  readonly name: LimitName
  readonly limit: number
  readonly units: number
}
export interface ConcurrencyDemand {
  readonly subject: string
  readonly limit: number
}

export function toDemand(subjects: readonly Subject[], defaults: Limits, cost: Cost): Demand {
  checkCost(cost)
  const buckets: BucketDemand[] = []
  const concurrency: ConcurrencyDemand[] = []
  const ids = subjects.length > 1 ? new Set<string>() : undefined
  for (const { id, limits = defaults } of subjects) {
    if (ids?.has(id)) throw new TypeError('Expected subjects with different ids')
    ids?.add(id)
    if (typeof id !== 'string')
      throw new TypeError(`Expected the \`id\` of a subject to be a text, got ${describeValue(id)}`)
    checkLimits(limits)
    const subject = toStorableId(id)
    const { requestsPerMinute, tokensPerMinute, concurrent } = limits
    if (requestsPerMinute !== undefined)
      buckets.push({ subject, name: 'requests', limit: requestsPerMinute, units: cost.requests })
    if (tokensPerMinute !== undefined)
      buckets.push({ subject, name: 'tokens', limit: tokensPerMinute, units: cost.tokens })
    if (concurrent !== undefined) concurrency.push({ subject, limit: concurrent })
  }
  return { buckets, concurrency }
}

/** Asked by who only looks. */
export const zeroCost: Cost = { requests: 0, tokens: 0 }

/** Throws a `TypeError` that names what is wrong. */
export function checkLimits(limits: Limits): void {
  checkKeys('limits.', limits, limitNames)
  checkRange('requestsPerMinute', limits.requestsPerMinute, 1, maxLimit)
  checkRange('tokensPerMinute', limits.tokensPerMinute, 1, maxLimit)
  checkRange('concurrent', limits.concurrent, 1, maxLimit)
}

const limitNames = ['requestsPerMinute', 'tokensPerMinute', 'concurrent'] satisfies (keyof Limits)[]

export function checkCost({ requests, tokens }: Cost): void {
  checkRange('requests', requests, 0, maxUnits)
  checkRange('tokens', tokens, 0, maxUnits)
}

/** More than any context holds; and a debt of thousands of them is still exact. */
const maxUnits = 1e9

function checkRange(name: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return
  throw new TypeError(
    `Expected \`${name}\` to be a whole number from ${min} to ${max}, got ${value} (${typeof value})`,
  )
}

/** Ids come from clients, too: they can be megabytes, and hold what no database takes for text. */
export const toStorableId = (id: string): string =>
  id.length <= maxIdLength && !id.includes('\0') && id.isWellFormed()
    ? id
    : `sha256:${createHash('sha256').update(Buffer.from(id, 'utf16le')).digest('hex')}`

const maxIdLength = 200
