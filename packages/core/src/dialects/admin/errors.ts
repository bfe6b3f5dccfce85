/** Errors of the admin API. */
import { type LlmError, statusOf } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { eventFrame } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'

export const renderError = (error: LlmError): HttpResponse =>
  json(toEnvelope(error), statusOf(error.code), retryHeaders(error))

/** The last event of a stream of server-sent events. */
export const renderErrorFrame = (error: LlmError): string =>
  eventFrame('error', JSON.stringify(toEnvelope(error)))

const toEnvelope = ({ code, message, details: { param } }: LlmError): object => ({
  error: { code, message, ...(param && { param }) },
})
