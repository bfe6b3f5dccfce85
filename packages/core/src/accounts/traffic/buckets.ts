/** Times in buckets that grow by a fifth, so that a percentile is at most 10 % off. */

const growth = 1.2
/** A day. */
const maxMs = 86_400_000

/** Returns the bucket of a time. Times below 1 ms are in bucket 0, times above a day in that of a day. */
export const bucketOf = (ms: number): number =>
  Math.round(Math.log(Math.min(Math.max(ms || 1, 1), maxMs)) / Math.log(growth))

/** Returns the middle of a bucket, in whole ms. */
const timeOf = (bucket: number): number => Math.round(growth ** bucket)

export interface Percentiles {
  readonly p50: number
  readonly p95: number
}

/** @param counts number of calls by bucket. Undefined without any */
export function percentilesOf(counts: ReadonlyMap<number, number>): Percentiles | undefined {
  const sorted = [...counts].sort(([a], [b]) => a - b)
  const total = sorted.reduce((sum, [, count]) => sum + count, 0)
  const at = (share: number): number => {
    let seen = 0
    for (const [bucket, count] of sorted) {
      seen += count
      if (seen >= share * total) return timeOf(bucket)
    }
    return 0
  }
  return total === 0 ? undefined : { p50: at(0.5), p95: at(0.95) }
}
