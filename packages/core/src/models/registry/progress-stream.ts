/** Reports the progress of running work. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Progress } from './progress.ts'

/** About 16 updates a second. */
const progressIntervalMs = 60

/**
 * Yields nothing if the work ends within the first interval. Otherwise yields progress at intervals, and once
 * more at the end if `totalBytes` is set. Throws the error of the work.
 */
export async function* streamProgress(
  event: Progress,
  work: { readonly completedBytes: number },
  run: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  // Ending the iteration cancels the work.
  const abandoned = new AbortController()
  const ended = run(AbortSignal.any([signal, abandoned.signal]))
  // `then` is called once instead of per interval. Otherwise callbacks would pile up during hours of work.
  const settled = new AbortController()
  const settle = (): void => settled.abort()
  ended.then(settle, settle)
  const pause = (): Promise<void> =>
    delay(progressIntervalMs, undefined, { signal: settled.signal }).catch(() => {})
  let hasReported = false
  try {
    for (await pause(); !settled.signal.aborted; await pause()) {
      hasReported = true
      yield { ...event, completedBytes: work.completedBytes }
    }
    await ended
  } finally {
    abandoned.abort()
  }
  if (hasReported && event.totalBytes !== undefined) yield { ...event, completedBytes: event.totalBytes }
}
