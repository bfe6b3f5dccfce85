/** Errors of the admin API. */
import { type LlmError, statusOf } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { retryHeaders } from '../../limits/headers.ts'

export const renderError = (error: LlmError): HttpResponse =>
  json(toEnvelope(error), statusOf(error.code), retryHeaders(error))

/** Required in every dialect. It is never called here, since the admin API sends no streams. */
export const renderErrorFrame = (error: LlmError): string => JSON.stringify(toEnvelope(error))

const toEnvelope = ({ code, message, details: { param } }: LlmError): object => ({
  error: { code, message, ...(param && { param }) },
})
