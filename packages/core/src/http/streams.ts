/** Answers written as they are made: server-sent events, with errors in-band and signs of life. */
import { LlmError } from '../errors.ts'
import type { HttpResponse } from './message.ts'

export interface StreamOptions {
  /** Says an error as a frame; the status line is long gone. */
  onError(error: LlmError): string
  /** Silence longer than this is broken by a heartbeat; twice this is the longest silence. */
  heartbeatMs?: number
  /** What breaks it. @default a comment */
  heartbeat?: string
}

/** One server-sent event without a name. JSON only: it has no line breaks of its own. */
export const dataFrame = (json: string): string => `data: ${json}\n\n`

/** One with a name. */
export const eventFrame = (name: string, json: string): string => `event: ${name}\n${dataFrame(json)}`

/** Proxies give up on silence; a comment line disturbs no client, unless it begins with `: ping`. */
const comment = ': keepalive\n\n'

export function sse(
  frames: AsyncIterable<string>,
  { onError, heartbeatMs = 7_500, heartbeat = comment }: StreamOptions,
): HttpResponse {
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      // `no-transform` keeps compression middleware from holding frames back.
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    },
    body: lively(frames, onError, heartbeatMs, heartbeat),
  }
}

/**
 * The frames, with heartbeats between them, and a failure as the last of them: thrown into the pipe it would
 * reach the client as a broken socket. One plain iterator with one timer: each generator in a chain, and a
 * race for each frame, costs more than the frame.
 */
function lively(
  frames: AsyncIterable<string>,
  onError: StreamOptions['onError'],
  everyMs: number,
  heartbeat: string,
): AsyncIterableIterator<string> {
  const source = frames[Symbol.asyncIterator]()
  let pending: Promise<IteratorResult<string>> | undefined
  let waiting: ((step: IteratorResult<string>) => void) | undefined
  let failed = false
  let quiet = false
  let timer: NodeJS.Timeout | undefined

  const pull = async (): Promise<IteratorResult<string>> => {
    if (failed) return { value: undefined, done: true }
    try {
      return await source.next()
    } catch (cause) {
      failed = true
      return { value: onError(LlmError.from(cause)), done: false }
    }
  }
  const beat = (): void => {
    if (quiet) waiting?.({ value: heartbeat, done: false })
    if (quiet) waiting = undefined
    quiet = true
  }

  return {
    next: () => {
      timer ??= setInterval(beat, everyMs)
      pending ??= pull()
      const step = pending
      return new Promise((resolve, reject) => {
        waiting = resolve
        step.then(
          (result) => {
            // Who waited was given a heartbeat; the next who asks gets the frame.
            if (waiting !== resolve) return
            pending = undefined
            waiting = undefined
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
    return: async (value?: unknown) => {
      clearInterval(timer)
      await source.return?.()
      return { value, done: true }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
