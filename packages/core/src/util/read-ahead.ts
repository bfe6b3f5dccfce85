/** A slow reader must not hold the model: what is produced waits here, one answer at most. */

/**
 * Runs `produce` in front of its reader, from the first pull on. Ends quietly when the
 * signal aborts or the reader stops reading; `produce` learns of both from its own signal.
 * What was pushed before a failure is still read.
 *
 * @param onConsume hears of each item that the reader takes
 */
export function readAhead<T>(
  signal: AbortSignal,
  produce: (push: (item: T) => void, signal: AbortSignal) => Promise<void>,
  onConsume: (item: T) => void = () => {},
): AsyncIterableIterator<T> {
  // Not `AbortSignal.any`: on a signal that lives long, each call would leave something behind.
  const controller = new AbortController()
  const stopped = controller.signal
  const abort = (): void => controller.abort()
  const items: T[] = []
  let state: 'idle' | 'running' | 'ended' | { readonly error: unknown } = 'idle'
  let wake: (() => void) | undefined
  const notify = (): void => wake?.()

  const start = (): void => {
    state = 'running'
    stopped.addEventListener('abort', notify, { once: true })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    const push = (item: T): void => {
      items.push(item)
      notify()
    }
    produce(push, stopped)
      .then(
        () => (state = 'ended'),
        (error: unknown) => (state = { error }),
      )
      .then(() => {
        signal.removeEventListener('abort', abort)
        notify()
      })
  }

  const next = async (): Promise<IteratorResult<T>> => {
    if (state === 'idle' && !signal.aborted && !stopped.aborted) start()
    while (state !== 'idle' && !stopped.aborted) {
      if (items.length > 0) {
        const value = items.shift() as T
        onConsume(value)
        return { value, done: false }
      }
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
      abort()
      return { value, done: true }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
