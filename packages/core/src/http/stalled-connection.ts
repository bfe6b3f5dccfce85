/** Closes the connection of a client that does not take its response, or does not end its request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StallLimits } from './message.ts'

/** Call it when the response is ready to be sent. */
export function closeIfStalled(
  req: IncomingMessage,
  res: ServerResponse,
  { responseMs, bodyMs }: StallLimits,
): void {
  if (res.destroyed) return
  limitReader(req, res, responseMs)
  if (!req.complete) limitRestOfBody(req, bodyMs)
}

/**
 * Uses the timer of the socket, because only this timer sees the progress of a single large write. It looks for
 * progress when it expires, so the connection is closed after one to two timeouts.
 */
function limitReader({ socket }: IncomingMessage, res: ServerResponse, timeoutMs: number): void {
  // Serverless platforms have sockets without a timer.
  if (typeof socket?.setTimeout !== 'function') return
  // A timeout of the host app stays. The same timeout may be that of an earlier request of the connection.
  if (socket.timeout && socket.timeout !== timeoutMs) return
  res.setTimeout(timeoutMs, () => {
    if (res.writableLength > 0) res.destroy()
  })
  // Ends the timer before Node.js starts that of `keepAliveTimeout`.
  res.prependOnceListener('finish', () => res.setTimeout(0))
}

/** Limits the whole time, because a client could send one byte after the other for as long as it likes. */
function limitRestOfBody(req: IncomingMessage, timeoutMs: number): void {
  const timer = setTimeout(() => req.destroy(), timeoutMs).unref()
  for (const event of ['end', 'close']) req.once(event, () => clearTimeout(timer))
}
