/** Work that has to be done in time. */

/**
 * Throws `late` after so many milliseconds. Not with `AbortSignal.timeout`: Node 20 may collect one that is joined with
 * others, and it never fires.
 */
export async function withDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ms: number,
  late: Error,
  signal?: AbortSignal,
): Promise<T> {
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(late), ms)
  try {
    return await work(signal ? AbortSignal.any([signal, over.signal]) : over.signal)
  } catch (error) {
    throw over.signal.aborted && !signal?.aborted ? late : error
  } finally {
    clearTimeout(timer)
  }
}
