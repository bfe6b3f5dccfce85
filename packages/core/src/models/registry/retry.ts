/** Retries transfers, and detects stalls. */
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import { StatusError } from './registry.ts'

/** Limits and pauses of a transfer. */
export interface TransferPolicy {
  /** Time without a byte after which a connection is aborted, in ms. Slow connections continue. */
  readonly stallMs: number
  /** Pause after the first failure, in ms. It doubles with each further failure. */
  readonly pauseMs: number
  /** Number of consecutive failures after which a transfer ends. */
  readonly maxFailures: number
  /** Size of one part, in bytes. @default a 64th of the file, at least 100 MB, at most 1 GB */
  readonly partBytes?: number
}

export const defaultTransferPolicy: TransferPolicy = { stallMs: 30_000, pauseMs: 1_000, maxFailures: 6 }

/** If a failed attempt transferred more than this, the count of consecutive failures restarts at 0. */
const minProgressBytes = 64 * 1024

/** @param completedBytes returns how many bytes need not be transferred again */
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

/** @param movedBytes returns how many bytes were sent or received */
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

/** An error that is not retried, since another attempt would fail in the same way. */
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
