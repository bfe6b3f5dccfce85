/** Work that has to be done in time. */

/**
 * Throws `late` after so many milliseconds. Not with `AbortSignal.timeout`: Node 20 may collect one that is joined with
 * others, and it never fires.
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
