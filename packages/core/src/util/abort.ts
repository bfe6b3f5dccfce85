/** Waits for a promise or an abort signal. The signal may outlive the promise, so its listener is removed. */

/** Settles like `work`, or rejects with the signal's reason when the signal aborts first. */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = (): void => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Settles like `work`, or resolves with `undefined` when the signal aborts first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await raceAbort(work, signal)
  } catch (error) {
    if (signal.aborted && error === signal.reason) return undefined
    throw error
  }
}
