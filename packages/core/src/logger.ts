/** Logging. Without a logger of the host app, log events are dropped. */
import type { LlmError } from './errors.ts'

/** The logger of the host app. A pino logger fits without a wrapper. */
export interface Logger {
  /** Called when a prompt diverges from the cached prompt. `details` contains token counts, but no text. */
  debug?(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/**
 * Creates a function that logs the errors that no client can correct. It logs every server failure, and each
 * mistake in the setup once.
 */
export function createErrorReporter(logger: Logger | undefined): (error: LlmError) => void {
  const reportedSetupErrors = new Set<string>()
  return (error) => {
    const { code, message, details } = error
    if (code === 'internal' || code === 'upstream') logger?.error({ err: error }, message)
    else if (details.setup && !reportedSetupErrors.has(message)) {
      reportedSetupErrors.add(message)
      logger?.warn({ err: error }, message)
    }
  }
}
