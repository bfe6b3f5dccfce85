/** Answers written as they are made: server-sent events, with errors in-band and signs of life. */
import { LlmError } from '../errors.ts'
import type { HttpResponse } from './message.ts'

export interface StreamOptions {
  /** Says an error as a frame; the status line is long gone. */
  onError(error: LlmError): string
  /** Silence longer than this is broken by a comment; twice this is the longest silence. */
  heartbeatMs?: number
}

/** One server-sent event without a name. JSON only: it has no line breaks of its own. */
export const dataFrame = (json: string): string => `data: ${json}\n\n`

/** Proxies give up on silence; a comment line disturbs no client, unless it begins with `: ping`. */
const heartbeat = ': keepalive\n\n'

export function sse(
  frames: AsyncIterable<string>,
  { onError, heartbeatMs = 7_500 }: StreamOptions,
): HttpResponse {
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      // `no-transform` keeps compression middleware from holding frames back.
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    },
    body: withHeartbeats(withErrors(frames, onError), heartbeatMs),
  }
}

/** An error thrown into the pipe would reach the client as a broken socket. */
async function* withErrors(
  frames: AsyncIterable<string>,
  onError: StreamOptions['onError'],
): AsyncGenerator<string> {
  try {
    yield* frames
  } catch (cause) {
    yield onError(LlmError.from(cause))
  }
}

/** One timer a stream: racing one per frame costs more than the frames. */
function withHeartbeats(frames: AsyncGenerator<string>, everyMs: number): AsyncIterableIterator<string> {
  let pending: Promise<IteratorResult<string>> | undefined
  let waiting: ((step: IteratorResult<string>) => void) | undefined
  let quiet = false
  let timer: NodeJS.Timeout | undefined
  const beat = (): void => {
    if (quiet) waiting?.({ value: heartbeat, done: false })
    quiet = true
  }

  return {
    next: () => {
      timer ??= setInterval(beat, everyMs)
      pending ??= frames.next()
      const step = pending
      return new Promise((resolve, reject) => {
        waiting = resolve
        step.then(
          (result) => {
            pending = undefined
            quiet = false
            if (result.done) clearInterval(timer)
            resolve(result)
          },
          (error: unknown) => {
            clearInterval(timer)
            reject(error)
          },
        )
      })
    },
    return: (value?: unknown) => {
      clearInterval(timer)
      return frames.return(value)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
