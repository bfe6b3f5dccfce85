/** A slow reader must not hold the model: what is produced waits here, one answer at most. */

/**
 * Runs `produce` in front of its reader, from the first pull on. Ends quietly when the
 * signal aborts or the reader stops reading; `produce` learns of both from its own signal.
 * What was pushed before a failure is still read.
 */
export function readAhead<T>(
  signal: AbortSignal,
  produce: (push: (item: T) => void, signal: AbortSignal) => Promise<void>,
): AsyncIterableIterator<T> {
  const left = new AbortController()
  const stopped = AbortSignal.any([signal, left.signal])
  const items: T[] = []
  let state: 'idle' | 'running' | 'ended' | { readonly error: unknown } = 'idle'
  let wake: (() => void) | undefined
  const notify = (): void => wake?.()

  const start = (): void => {
    state = 'running'
    stopped.addEventListener('abort', notify, { once: true })
    const push = (item: T): void => {
      items.push(item)
      notify()
    }
    produce(push, stopped)
      .then(
        () => (state = 'ended'),
        (error: unknown) => (state = { error }),
      )
      .then(notify)
  }

  const next = async (): Promise<IteratorResult<T>> => {
    if (state === 'idle' && !stopped.aborted) start()
    while (!stopped.aborted) {
      if (items.length > 0) return { value: items.shift() as T, done: false }
      if (state === 'ended') break
      if (typeof state === 'object') {
        const { error } = state
        state = 'ended'
        throw error
      }
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return { value: undefined, done: true }
  }

  return {
    next,
    return: async (value?: unknown) => {
      left.abort()
      return { value, done: true }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
