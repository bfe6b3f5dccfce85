/** Work, told of while it goes on. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Progress } from './progress.ts'

/** Often enough for the eye. */
const progressIntervalMs = 60

/**
 * How far it is, now and then; at its end only where something was told before: what is quick needs no words. Throws what the
 * work ends with.
 */
export async function* streamProgress(
  event: Progress,
  work: { readonly completedBytes: number },
  run: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  // Who stops listening has left, too.
  const abandoned = new AbortController()
  const ended = run(AbortSignal.any([signal, abandoned.signal]))
  // Waited for once: each who waits for a promise is kept until it settles, which takes hours here.
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
