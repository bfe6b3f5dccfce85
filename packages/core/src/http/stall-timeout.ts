/** Ends a request body when its client pauses for too long. */
import { LlmError } from '../errors.ts'

/**
 * Rejects with `timeout` when a chunk does not arrive in time. Only the time that the consumer waits for the
 * client counts: a slow consumer does not make the client late.
 */
export async function* withStallTimeout(
  chunks: AsyncIterable<Uint8Array>,
  timeoutMs: number,
): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]()
  let isWaiting = false
  try {
    for (;;) {
      isWaiting = true
      const { value, done } = await nextWithin(iterator, timeoutMs)
      isWaiting = false
      if (done) return
      yield value
    }
  } finally {
    const closed = iterator.return?.()
    // After a stall, the iterator still waits for the client, and its `return` would wait, too.
    if (isWaiting) closed?.catch(() => {})
    else await closed
  }
}

function nextWithin(
  iterator: AsyncIterator<Uint8Array>,
  timeoutMs: number,
): Promise<IteratorResult<Uint8Array>> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // If the event loop was blocked, the chunk may have arrived. Node.js runs late timers before it reads
      // sockets, and immediates after that.
      setImmediate(() => reject(bodyStalled(timeoutMs)))
    }, timeoutMs)
    timer.unref()
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

const bodyStalled = (timeoutMs: number): LlmError =>
  new LlmError(
    'timeout',
    `The request body stalled: the client sent nothing for ${timeoutMs / 1_000} s before the body was complete.`,
  )
