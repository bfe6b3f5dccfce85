/** Converts errors to messages for model processes and other apps, and back. */
import { z } from 'zod'
import { LlmError, type LlmErrorCode, type LlmErrorDetails } from '../../errors.ts'

export const WireError = z.object({
  code: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.unknown()),
  /** For the app's log, never for clients. */
  cause: z.string().optional(),
})
export type WireError = z.output<typeof WireError>

export const toWireError = (error: unknown): WireError => {
  const { code, message, details, cause } = LlmError.from(error)
  return { code, message, details: { ...details }, ...(cause !== undefined && { cause: formatStack(cause) }) }
}
/** For another app. The cause stays in the log of this app, since it may contain paths and addresses. */
export function toForwardedError(error: LlmError): WireError {
  const { cause: _, ...told } = toWireError(error)
  return told
}
export const fromWireError = ({ code, message, details, cause }: WireError): LlmError =>
  new LlmError(
    code as LlmErrorCode,
    message,
    details as LlmErrorDetails,
    cause === undefined ? {} : { cause: new Error(cause) },
  )

const formatStack = (cause: unknown): string =>
  String(cause instanceof Error ? (cause.stack ?? cause.message) : cause).slice(0, 4_000)
