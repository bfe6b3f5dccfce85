/** Time limits. */

/**
 * Throws `timeoutError` after `ms` milliseconds. `AbortSignal.timeout` is not used: Node 20 may garbage-collect one inside
 * `AbortSignal.any`, and it never fires.
 */
export async function withDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ms: number,
  timeoutError: Error,
  signal?: AbortSignal,
): Promise<T> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(timeoutError), ms)
  try {
    return await work(signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal)
  } catch (error) {
    throw deadline.signal.aborted && !signal?.aborted ? timeoutError : error
  } finally {
    clearTimeout(timer)
  }
}
