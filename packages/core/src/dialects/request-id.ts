/** Chooses the id of a request, which is in its response, in its errors and in the log. */
import { nanoid } from 'nanoid'
import type { HttpRequest } from '../http/message.ts'

/**
 * Characters of UUIDs, base64 and trace ids. None of them can end a header or a line of a log, or open a tag. The
 * length bounds what a client can write into the log.
 */
const wellFormed = /^[A-Za-z0-9._:+/=-]{1,128}$/

/** Returns the `x-request-id` that a client or a proxy has sent, if it is well-formed. Otherwise creates an id. */
export function requestIdOf({ header }: Pick<HttpRequest, 'header'>): string {
  const given = header('x-request-id')
  return given !== undefined && wellFormed.test(given) ? given : `req_${nanoid()}`
}
