/** How far a batch is. */
import { formatCount } from '../../format/numbers.ts'
import type { Batch } from './queries.ts'

export const outcomes = ['succeeded', 'errored', 'canceled', 'expired'] as const

/** Number of requests of a batch. Grows while their file is read. */
export const totalOf = ({ counts }: Pick<Batch, 'counts'>): number =>
  outcomes.reduce((sum, outcome) => sum + counts[outcome], counts.processing)

/** Part of the requests that have a result, from 0 to 1. */
export function progressOf(batch: Pick<Batch, 'counts'>): number {
  const total = totalOf(batch)
  return total === 0 ? 0 : 1 - batch.counts.processing / total
}

/** The progress in words, such as `380 of 1,000`. */
export function progressText(batch: Pick<Batch, 'counts' | 'status'>): string {
  const total = totalOf(batch)
  if (batch.status === 'validating')
    return total === 0 ? 'Reading the requests' : `${formatCount(total)} read`
  return `${formatCount(total - batch.counts.processing)} of ${formatCount(total)}`
}

/** Time that the remaining requests take at the pace so far, in ms. */
export function remainingMs(
  batch: Pick<Batch, 'counts' | 'status' | 'startedAt'>,
  now: Date,
): number | undefined {
  if (batch.status !== 'in_progress' || batch.startedAt === undefined) return undefined
  const done = totalOf(batch) - batch.counts.processing
  if (done === 0) return undefined
  return ((now.getTime() - new Date(batch.startedAt).getTime()) / done) * batch.counts.processing
}
