/**
 * Aborts the work and throws `timeoutError` after `ms` milliseconds. `AbortSignal.timeout` would be
 * unreliable: Node 20 may garbage-collect its signal inside `AbortSignal.any` before it fires.
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
