/** Follows a response until it is sent. */
import type { HttpRequest, HttpResponse } from './message.ts'

/**
 * Calls the function when the response has left the process or the connection is closed. On a platform that does not
 * report it, calls the function at once for a whole response, and at the last frame of a stream.
 */
export function whenSent(
  { onSent, signal }: Pick<HttpRequest, 'onSent' | 'signal'>,
  { body }: Pick<HttpResponse, 'body'>,
  callback: () => void,
): void {
  if (onSent) onSent(callback)
  else if (body === null || typeof body === 'string') callback()
  else whenAborted(signal, callback)
}

export function whenAborted(signal: AbortSignal, callback: () => void): void {
  if (signal.aborted) callback()
  else signal.addEventListener('abort', callback, { once: true })
}
