/** Logging. Without a logger of the host app, log events are dropped. */
import type { LlmError } from './errors.ts'

/** The logger of the host app. A pino logger fits without a wrapper. Its own failures are ignored. */
export interface Logger {
  /** Called when a prompt diverges from the cached prompt. `details` contains token counts, but no text. */
  debug?(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Returns a logger that never fails: a mistake in the host app's logger must not end what it logs. */
export function containLogger(logger: Logger): Logger {
  // The promise handles a method that throws, and one that rejects.
  const call =
    (method: keyof Logger) =>
    (details: object, message: string): void =>
      void new Promise((resolve) => resolve(logger[method]?.(details, message))).catch(() => {})
  return { debug: call('debug'), warn: call('warn'), error: call('error') }
}

/**
 * Creates a function that logs the errors that no client can correct. It logs every server failure once, even if
 * several parts report it, and each mistake in the setup once. The log event contains the id of the request, if the
 * first report has one.
 */
export function createErrorReporter(
  logger: Logger | undefined,
): (error: LlmError, requestId?: string) => void {
  const reportedSetupErrors = new Set<string>()
  const reported = new WeakSet<LlmError>()
  return (error, requestId) => {
    if (reported.has(error)) return
    reported.add(error)
    const { code, message, details } = error
    const event = { err: error, ...(requestId !== undefined && { requestId }) }
    if (code === 'internal' || code === 'upstream' || code === 'unavailable') logger?.error(event, message)
    else if (details.setup && !reportedSetupErrors.has(message)) {
      reportedSetupErrors.add(message)
      logger?.warn(event, message)
    }
  }
}
