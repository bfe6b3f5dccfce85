/**
 * Runs one job per item. At most `concurrency` jobs run at the same time. They start in the order of the
 * items.
 */
import { setMaxListeners } from 'node:events'

/**
 * When `callerSignal` aborts, starts no more jobs, and resolves after the running jobs have ended. When a job
 * fails, aborts the signal of the other jobs, and throws the first error after they have ended.
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
