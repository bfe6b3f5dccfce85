/** Log events of the toolkit. They go to the app's logger; without one, nowhere. */
import type { LlmError } from './errors.ts'

/** A pino logger has this shape. */
export interface Logger {
  /** Called with the common prefix of a prompt and the one before it. */
  debug?(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Logs errors that no client can correct: each failure of the server, and each mistake in the setup once. */
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
