/** Closes the connection of a client that does not take its response, or does not end its request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { StallLimits } from './message.ts'

/** Call it when the response is ready to be sent. */
export function closeIfStalled(
  req: IncomingMessage,
  res: ServerResponse,
  { responseMs, bodyMs }: StallLimits,
): void {
  if (res.destroyed) return
  if ('stream' in res) limitHttp2Reader(res, responseMs)
  else if (res.socket) limitReader(res, res.socket, responseMs)
  // A pipelined response gets the socket when the one before it has ended.
  else res.once('socket', (socket: Socket) => limitReader(res, socket, responseMs))
  if (!req.complete) limitRestOfBody(req, bodyMs)
}

/**
 * Looks at the progress once in each timeout, so the connection is closed after one to two timeouts. The timer of
 * the socket would not do: it belongs to the host app, and bytes from the client restart it.
 */
function limitReader(res: ServerResponse, socket: Socket, timeoutMs: number): void {
  // Serverless platforms have other objects, and deliver the response themselves.
  if (!(socket instanceof Socket)) return
  let before = progressOf(res, socket)
  const check = (): void => {
    const now = progressOf(res, socket)
    if (now.waitingBytes > 0 && now.unsentBytes === before.unsentBytes && now.sentBytes === before.sentBytes)
      res.destroy()
    before = now
  }
  // After a pause of the event loop, the socket first reports what has been sent meanwhile.
  const timer = setInterval(() => setImmediate(check), timeoutMs).unref()
  for (const event of ['finish', 'close']) res.once(event, () => clearInterval(timer))
}

/** `unsentBytes` is what Node.js itself uses, because the other numbers do not change during a single large write. */
function progressOf(res: ServerResponse, socket: Socket) {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null }
  return {
    waitingBytes: res.writableLength,
    sentBytes: socket.bytesWritten,
    unsentBytes: handle?.writeQueueSize ?? 0,
  }
}

/** The timer of an HTTP/2 stream belongs to this response only. */
function limitHttp2Reader(res: ServerResponse, timeoutMs: number): void {
  res.setTimeout(timeoutMs, () => {
    if (res.writableLength > 0) res.destroy()
  })
}

/** Limits the whole time, because a client could send one byte after the other for as long as it likes. */
function limitRestOfBody(req: IncomingMessage, timeoutMs: number): void {
  const timer = setTimeout(() => {
    // A body that nobody reads has no `end` before the response is over.
    if (!req.complete) req.destroy()
  }, timeoutMs).unref()
  for (const event of ['end', 'close']) req.once(event, () => clearTimeout(timer))
}
