/** Answers written as they are made: server-sent events or lines of JSON, with errors in-band and signs of life. */
import { LlmError } from '../errors.ts'
import type { HttpResponse } from './message.ts'

export interface StreamOptions {
  /** Says an error as a frame; the status line is long gone. */
  onError(error: LlmError): string
  /** Silence longer than this is broken by a heartbeat; twice this is the longest silence. */
  heartbeatMs?: number
  /** What breaks it. */
  heartbeat: string | (() => string)
}

/** One server-sent event without a name. JSON only: it has no line breaks of its own. */
export const dataFrame = (json: string): string => `data: ${json}\n\n`

/** One with a name. */
export const eventFrame = (name: string, json: string): string => `event: ${name}\n${dataFrame(json)}`

/** One line of a stream of JSON objects. */
export const jsonLine = (value: object): string => `${JSON.stringify(value)}\n`

/** Proxies give up on silence; a comment line disturbs no client, unless it begins with `: ping`. */
const keepAliveComment = ': keepalive\n\n'

/** Server-sent events. By default a silence is broken by a comment. */
export const sse = (
  frames: AsyncIterable<string>,
  { heartbeat = keepAliveComment, ...options }: Omit<StreamOptions, 'heartbeat'> & { heartbeat?: string },
): HttpResponse => toStreamResponse('text/event-stream; charset=utf-8', frames, { ...options, heartbeat })

/** One JSON object a line. Nothing but an object is a line, so the heartbeat is one, too. */
export const ndjson = (lines: AsyncIterable<string>, options: StreamOptions): HttpResponse =>
  toStreamResponse('application/x-ndjson', lines, options)

const toStreamResponse = (
  contentType: string,
  frames: AsyncIterable<string>,
  { onError, heartbeatMs = 7_500, heartbeat }: StreamOptions,
): HttpResponse => ({
  status: 200,
  headers: {
    'content-type': contentType,
    // `no-transform` keeps compression middleware from holding frames back.
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  },
  body: withHeartbeats(frames, onError, heartbeatMs, heartbeat),
})

/**
 * The frames, with heartbeats between them, and a failure as the last of them: thrown into the pipe it would
 * reach the client as a broken socket. One plain iterator with one timer: each generator in a chain, and a
 * race for each frame, costs more than the frame.
 */
function withHeartbeats(
  frames: AsyncIterable<string>,
  onError: StreamOptions['onError'],
  intervalMs: number,
  heartbeat: StreamOptions['heartbeat'],
): AsyncIterableIterator<string> {
  const source = frames[Symbol.asyncIterator]()
  let pending: Promise<IteratorResult<string>> | undefined
  let resolveNext: ((step: IteratorResult<string>) => void) | undefined
  let hasFailed = false
  let isIdle = false
  let timer: NodeJS.Timeout | undefined

  const pull = async (): Promise<IteratorResult<string>> => {
    if (hasFailed) return { value: undefined, done: true }
    try {
      return await source.next()
    } catch (cause) {
      hasFailed = true
      return { value: onError(LlmError.from(cause)), done: false }
    }
  }
  const sendHeartbeat = (): void => {
    if (isIdle) resolveNext?.({ value: typeof heartbeat === 'string' ? heartbeat : heartbeat(), done: false })
    if (isIdle) resolveNext = undefined
    isIdle = true
  }

  return {
    next: () => {
      timer ??= setInterval(sendHeartbeat, intervalMs)
      pending ??= pull()
      const step = pending
      return new Promise((resolve, reject) => {
        resolveNext = resolve
        step.then(
          (result) => {
            // Who waited was given a heartbeat; the next who asks gets the frame.
            if (resolveNext !== resolve) return
            pending = undefined
            resolveNext = undefined
            isIdle = false
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
