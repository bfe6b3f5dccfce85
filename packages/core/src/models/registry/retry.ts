/** Transfers that go on after failures, and end where going on is of no use. */
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import { StatusError } from './registry.ts'

/** How long is waited for what. */
export interface TransferPolicy {
  /** Where no byte has moved for so long, the connection stands still. However slow it is, it may go on. */
  readonly stallMs: number
  /** After a failure; twice as long after each further one. */
  readonly pauseMs: number
  /** Failures one after the other that end a transfer. */
  readonly maxFailures: number
  /** Of one part. @default by the size of the whole */
  readonly partBytes?: number
}

export const defaultTransferPolicy: TransferPolicy = { stallMs: 30_000, pauseMs: 1_000, maxFailures: 6 }

/** Who kept more has not failed. */
const minProgressBytes = 64 * 1024

/** @param completedBytes how many bytes need not be moved again */
export async function retry(
  attempt: () => Promise<void>,
  completedBytes: () => number,
  policy: TransferPolicy,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; ; ) {
    const before = completedBytes()
    try {
      return await attempt()
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error
      failures = completedBytes() - before > minProgressBytes ? 0 : failures + 1
      if (failures === policy.maxFailures) throw tooManyFailures(error)
      await delay(policy.pauseMs * 2 ** Math.max(0, failures - 1), undefined, { signal })
    }
  }
}

/** @param movedBytes how many bytes have come or gone */
export async function withStallWatch<T>(
  work: (signal: AbortSignal) => Promise<T>,
  movedBytes: () => number,
  { stallMs }: TransferPolicy,
  signal: AbortSignal,
): Promise<T> {
  const stalled = new AbortController()
  let before = movedBytes()
  const watch = setInterval(() => {
    if (movedBytes() === before) stalled.abort(new LlmError('upstream', 'part stalled'))
    before = movedBytes()
  }, stallMs)
  try {
    return await work(AbortSignal.any([signal, stalled.signal]))
  } catch (error) {
    throw stalled.signal.aborted && !signal.aborted ? stalled.signal.reason : error
  } finally {
    clearInterval(watch)
  }
}

/** Asked again, the same would be said. */
export class FinalError extends Error {}

function isFinal(error: unknown): boolean {
  if (error instanceof StatusError)
    return error.registryStatus < 500 && error.registryStatus !== 408 && error.registryStatus !== 429
  return error instanceof FinalError || (error instanceof LlmError && error.code !== 'upstream')
}

function tooManyFailures(cause: unknown): LlmError {
  const last = cause instanceof Error ? cause.message : String(cause)
  return new LlmError('upstream', `max retries exceeded: ${last}`, {}, { cause })
}
