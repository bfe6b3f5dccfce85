/** Work, told of while it goes on. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Progress } from './progress.ts'

/** Often enough for the eye. */
const tellMs = 60

/**
 * How far it is, now and then; at its end only where something was told before: what is quick needs no words. Throws what the
 * work ends with.
 */
export async function* told(
  event: Progress,
  work: { readonly completedBytes: number },
  run: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  // Who stops listening has left, too.
  const left = new AbortController()
  const ended = run(AbortSignal.any([signal, left.signal]))
  // Waited for once: each who waits for a promise is kept until it settles, which takes hours here.
  const over = new AbortController()
  const end = (): void => over.abort()
  ended.then(end, end)
  const pause = (): Promise<void> => delay(tellMs, undefined, { signal: over.signal }).catch(() => {})
  let isTold = false
  try {
    for (await pause(); !over.signal.aborted; await pause()) {
      isTold = true
      yield { ...event, completedBytes: work.completedBytes }
    }
    await ended
  } finally {
    left.abort()
  }
  if (isTold && event.totalBytes !== undefined) yield { ...event, completedBytes: event.totalBytes }
}
