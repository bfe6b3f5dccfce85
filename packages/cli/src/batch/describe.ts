/** Describes batches in text and JSON. */
import { humanTime } from '../format/human.ts'
import { table } from '../format/table.ts'
import { type BatchState, completedOf } from './batch-api.ts'

/** `9 succeeded, 1 errored`. */
export function summaryOf({ outcomes, errors }: BatchState): string {
  const parts = Object.entries(outcomes).flatMap(([outcome, count]) =>
    count > 0 ? [`${count} ${outcome}`] : [],
  )
  return parts.join(', ') || (errors.length > 0 ? 'no request ran' : 'none has ended')
}

export function describeBatch(batch: BatchState): string {
  const { id, status, total, createdAt, expiresAt, endedAt, isEnded, errors } = batch
  const [expiry, end] = [isEnded ? undefined : expiresAt, endedAt]
  return table([
    ['Batch', id],
    ['Status', status],
    ['Requests', `${total} (${summaryOf(batch)})`],
    ['Created', humanTime(createdAt.toISOString())],
    ...(expiry ? [['Expires', humanTime(expiry.toISOString())]] : []),
    ...(end ? [['Ended', humanTime(end.toISOString())]] : []),
    ...errors.map((error) => ['Error', error]),
  ])
}

export const listBatches = (batches: readonly BatchState[]): string =>
  table([
    ['ID', 'STATUS', 'REQUESTS', 'OUTCOMES', 'CREATED'],
    ...batches.map((batch) => [
      batch.id,
      batch.status,
      `${batch.total}`,
      completedOf(batch) > 0 ? summaryOf(batch) : '-',
      humanTime(batch.createdAt.toISOString()),
    ]),
  ])

export const toJson = (value: BatchState | readonly BatchState[]): string =>
  `${JSON.stringify(value, null, 2)}\n`
