/** Transfers that go on after failures, and end where going on is of no use. */
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import { StatusError } from './registry.ts'

/** How long is waited for what. */
export interface Pace {
  /** Where no byte has moved for so long, the connection stands still. However slow it is, it may go on. */
  readonly stallMs: number
  /** After a failure; twice as long after each further one. */
  readonly pauseMs: number
  /** Failures one after the other that end a transfer. */
  readonly maxFailures: number
  /** Of one part. @default by the size of the whole */
  readonly partBytes?: number
}

export const usualPace: Pace = { stallMs: 30_000, pauseMs: 1_000, maxFailures: 6 }

/** Who kept more has not failed. */
const leastBytes = 64 * 1024

/** @param kept how many bytes need not be moved again */
export async function retry(
  attempt: () => Promise<void>,
  kept: () => number,
  pace: Pace,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; ; ) {
    const before = kept()
    try {
      return await attempt()
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error
      failures = kept() - before > leastBytes ? 0 : failures + 1
      if (failures === pace.maxFailures) throw tooManyFailures(error)
      await delay(pace.pauseMs * 2 ** Math.max(0, failures - 1), undefined, { signal })
    }
  }
}

/** @param moved how many bytes have come or gone */
export async function withStallWatch<T>(
  work: (signal: AbortSignal) => Promise<T>,
  moved: () => number,
  { stallMs }: Pace,
  signal: AbortSignal,
): Promise<T> {
  const stalled = new AbortController()
  let before = moved()
  const watch = setInterval(() => {
    if (moved() === before) stalled.abort(new LlmError('upstream', 'part stalled'))
    before = moved()
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
  if (error instanceof StatusError) return error.said < 500 && error.said !== 408 && error.said !== 429
  return error instanceof FinalError || (error instanceof LlmError && error.code !== 'upstream')
}

function tooManyFailures(cause: unknown): LlmError {
  const last = cause instanceof Error ? cause.message : String(cause)
  return new LlmError('upstream', `max retries exceeded: ${last}`, {}, { cause })
}
