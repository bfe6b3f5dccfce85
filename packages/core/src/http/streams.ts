/**
 * Creates streamed responses: server-sent events or JSON lines, with heartbeats. An error becomes the last
 * frame.
 */
import { LlmError } from '../errors.ts'
import type { HttpResponse, ResponseFrames } from './message.ts'

export interface StreamOptions {
  /** Renders an error as the last frame, since the status code has already been sent. */
  onError(error: LlmError): string
  /** Interval of the heartbeat timer, in ms. The longest silence is two intervals. @default 7,500 */
  heartbeatMs?: number
  /** Frame to send as a heartbeat. */
  heartbeat: string | (() => string)
}

/** A server-sent event without a name. @param json without line breaks, as `JSON.stringify` returns it */
export const dataFrame = (json: string): string => `data: ${json}\n\n`

/** A server-sent event with a name. */
export const eventFrame = (name: string, json: string): string => `event: ${name}\n${dataFrame(json)}`

/** One line of a stream of JSON objects. */
export const jsonLine = (value: object): string => `${JSON.stringify(value)}\n`

/**
 * Heartbeat against idle timeouts of proxies. Clients ignore this comment. Some of them do not ignore the
 * comment `: ping`.
 */
const keepAliveComment = ': keepalive\n\n'

/** A stream of server-sent events. */
export const sse = (
  frames: AsyncIterable<string>,
  { heartbeat = keepAliveComment, ...options }: Omit<StreamOptions, 'heartbeat'> & { heartbeat?: string },
): HttpResponse => toStreamResponse('text/event-stream; charset=utf-8', frames, { ...options, heartbeat })

/** A stream of JSON lines. Its heartbeat must also be a JSON line. */
export const ndjson = (lines: AsyncIterable<string>, options: StreamOptions): HttpResponse =>
  toStreamResponse('application/x-ndjson', lines, options)

/**
 * A list of JSON values, one per line, without heartbeats: clients parse each line. An error breaks the connection, since
 * a client must not take an incomplete list for a complete one.
 */
export const jsonLines = (
  lines: AsyncIterable<string>,
  { onError }: Pick<StreamOptions, 'onError'>,
): HttpResponse => ({
  status: 200,
  headers: { 'content-type': 'application/x-jsonl', 'cache-control': 'no-cache, no-transform' },
  body: reportingErrors(withLineBreaks(lines), onError),
})

/** A file that browsers store instead of showing it. An error breaks the connection. */
export const attachment = (
  content: ResponseFrames,
  filename: string,
  { onError }: Pick<StreamOptions, 'onError'>,
): HttpResponse => ({
  status: 200,
  headers: {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="${filename.replaceAll(/[^\w.-]/g, '_')}"`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache, no-transform',
  },
  body: reportingErrors(content, onError),
})

async function* reportingErrors<Frame>(
  frames: AsyncIterable<Frame>,
  onError: StreamOptions['onError'],
): AsyncGenerator<Frame> {
  try {
    yield* frames
  } catch (cause) {
    onError(LlmError.from(cause))
    throw cause
  }
}

async function* withLineBreaks(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`
}

const toStreamResponse = (
  contentType: string,
  frames: AsyncIterable<string>,
  options: StreamOptions,
): HttpResponse => ({
  status: 200,
  headers: {
    'content-type': contentType,
    // `no-transform` prevents compression middleware from buffering frames.
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  },
  body: new HeartbeatIterator(frames, options),
})

/**
 * Adds heartbeats to silent streams, and renders a failure as the last frame. If the iterator threw the
 * error, the client would only see a closed socket. The class is a plain iterator with one timer. A
 * generator, or a `Promise.race` per frame, would cost more than rendering the frame.
 */
class HeartbeatIterator implements AsyncIterableIterator<string> {
  readonly #source: AsyncIterator<string>
  readonly #onError: StreamOptions['onError']
  readonly #heartbeat: StreamOptions['heartbeat']
  readonly #intervalMs: number
  #timer: NodeJS.Timeout | undefined
  /**
   * The frame that is being pulled. If a heartbeat is sent first, the following `next()` returns this frame.
   */
  #pending: Promise<IteratorResult<string>> | undefined
  #resolveNext: ((step: IteratorResult<string>) => void) | undefined
  #isIdle = false
  #hasFailed = false

  constructor(frames: AsyncIterable<string>, { onError, heartbeat, heartbeatMs = 7_500 }: StreamOptions) {
    this.#source = frames[Symbol.asyncIterator]()
    this.#onError = onError
    this.#heartbeat = heartbeat
    this.#intervalMs = heartbeatMs
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<string>> {
    this.#timer ??= setInterval(() => this.#beat(), this.#intervalMs)
    this.#pending ??= this.#pull()
    const step = this.#pending
    return new Promise((resolve, reject) => {
      this.#resolveNext = resolve
      step.then(
        (result) => this.#settle(result, resolve),
        (error: unknown) => {
          clearInterval(this.#timer)
          reject(error)
        },
      )
    })
  }

  async return(value?: unknown): Promise<IteratorResult<string>> {
    clearInterval(this.#timer)
    await this.#source.return?.()
    return { value, done: true }
  }

  async #pull(): Promise<IteratorResult<string>> {
    if (this.#hasFailed) return { value: undefined, done: true }
    try {
      return await this.#source.next()
    } catch (cause) {
      this.#hasFailed = true
      return { value: this.#onError(LlmError.from(cause)), done: false }
    }
  }

  #settle(result: IteratorResult<string>, resolve: (step: IteratorResult<string>) => void): void {
    // A heartbeat has already answered this `next()`. The following call gets the frame.
    if (this.#resolveNext !== resolve) return
    this.#pending = undefined
    this.#resolveNext = undefined
    this.#isIdle = false
    if (result.done) clearInterval(this.#timer)
    resolve(result)
  }

  #beat(): void {
    if (this.#isIdle) {
      const heartbeat = this.#heartbeat
      this.#resolveNext?.({ value: typeof heartbeat === 'string' ? heartbeat : heartbeat(), done: false })
      this.#resolveNext = undefined
    }
    this.#isIdle = true
  }
}
