/** Retries transfers, and detects stalls. */
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import { StatusError } from './registry.ts'

/** Limits and pauses of a transfer. */
export interface TransferPolicy {
  /** A connection is aborted after this time without a byte. Slow ones continue. */
  readonly stallMs: number
  /** Pause after the first failure; doubles with each further one. */
  readonly pauseMs: number
  /** Consecutive failures that end a transfer. */
  readonly maxFailures: number
  /** Size of one part. @default depends on the file size */
  readonly partBytes?: number
}

export const defaultTransferPolicy: TransferPolicy = { stallMs: 30_000, pauseMs: 1_000, maxFailures: 6 }

/** An attempt that completed more does not count as a failure. */
const minProgressBytes = 64 * 1024

/** @param completedBytes bytes that need no repetition */
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

/** @param movedBytes bytes sent or received */
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

/** Not retried: another attempt would fail in the same way. */
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
