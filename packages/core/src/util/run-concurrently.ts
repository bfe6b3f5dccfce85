/** Jobs side by side, so many at a time, in the order of what they are for. */
import { setMaxListeners } from 'node:events'

/**
 * Ends quietly when the signal aborts, with jobs not begun. The first failure aborts the signal of the others, and is
 * thrown when they have ended.
 */
export async function runConcurrently<Item>(
  items: readonly Item[],
  concurrency: number,
  callerSignal: AbortSignal,
  job: (item: Item, index: number, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failure = new AbortController()
  const signal = AbortSignal.any([callerSignal, failure.signal])
  setMaxListeners(0, signal)
  const remaining = items.entries()
  const runLane = async (): Promise<void> => {
    for (const [index, item] of remaining) {
      if (signal.aborted) return
      await job(item, index, signal)
    }
  }
  const lanes = Array.from({ length: Math.min(concurrency, items.length) }, () =>
    runLane().catch((cause: unknown) => failure.abort(cause)),
  )
  await Promise.all(lanes)
  if (failure.signal.aborted) throw failure.signal.reason
}
