/** What the toolkit says to whoever runs the app: into the app's own logger, or nowhere. */
import type { LlmError } from './errors.ts'

/** A pino logger fits as it is. */
export interface Logger {
  /** What a prompt has in common with the one before, and where it goes another way. */
  debug?(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Passes on the errors that clients cannot help: each failure of ours, and each mistake in the set-up once. */
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
