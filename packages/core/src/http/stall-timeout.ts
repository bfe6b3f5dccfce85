/** Ends a request body when its client pauses for too long, or sends too little in that time. */
import { LlmError } from '../errors.ts'

/**
 * Rejects with `timeout` when fewer than `minBytes` arrive within the time limit, unless the body ends. Only
 * the time that the consumer waits for the client counts: a slow consumer does not make the client late.
 */
export async function* withStallTimeout(
  chunks: AsyncIterable<Uint8Array>,
  timeoutMs: number,
  minBytes: number,
): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]()
  let isWaiting = false
  // Since the last `minBytes` were complete.
  let bytes = 0
  let waitedMs = 0
  try {
    for (;;) {
      isWaiting = true
      const startedAt = performance.now()
      const next = await nextWithin(iterator, timeoutMs - waitedMs, () => bodyStalled(timeoutMs, minBytes))
      isWaiting = false
      if (next.done) return
      bytes += next.value.length
      waitedMs += performance.now() - startedAt
      if (bytes >= minBytes) {
        bytes = 0
        waitedMs = 0
      }
      yield next.value
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
  createError: () => LlmError,
): Promise<IteratorResult<Uint8Array>> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // If the event loop was blocked, the chunk may have arrived. Node.js runs late timers before it reads
      // sockets, and immediates after that.
      setImmediate(() => reject(createError()))
    }, timeoutMs)
    timer.unref()
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

function bodyStalled(timeoutMs: number, minBytes: number): LlmError {
  const sent = minBytes === 1 ? 'nothing' : `less than ${minBytes} bytes`
  return new LlmError(
    'timeout',
    `The request body stalled: the client sent ${sent} in ${timeoutMs / 1_000} s before the body was complete.`,
  )
}
