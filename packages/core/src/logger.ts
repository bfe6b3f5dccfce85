/** Logging. Without a logger of the host app, log events are dropped. */
import type { LlmError } from './errors.ts'

/**
 * The logger of the host app. A pino logger fits as it is, and others by `messageFirst()`. Its own failures are ignored.
 * No line contains prompts, answers, API keys or end users.
 */
export interface Logger {
  /** Called when a prompt diverges from the cached prompt. `details` contains token counts, but no text. */
  debug?(details: object, message: string): void
  /** Called when a model is loaded or unloaded, and for each call with `accessLog: true`. */
  info?(details: object, message: string): void
  /**
   * Called for problems that the app survives, such as a model that runs on the CPU because the graphics card is
   * full.
   */
  warn(details: object, message: string): void
  /** Called for failures that no client can correct, such as a database that cannot be written. */
  error(details: object, message: string): void
  /** Returns a logger that adds fields to each line. If absent, the fields are added to `details`. */
  child?(fields: object): Logger
}

type Level = 'debug' | 'info' | 'warn' | 'error'

/** Returns a logger that never fails: a mistake in the host app's logger must not end what it logs. */
export function containLogger(logger: Logger): Logger {
  // The promise handles a method that throws, and one that rejects.
  const call =
    (level: Level) =>
    (details: object, message: string): void =>
      void new Promise((resolve) => resolve(logger[level]?.(details, message))).catch(() => {})
  return {
    ...{ debug: call('debug'), info: call('info'), warn: call('warn'), error: call('error') },
    child: (fields) => {
      try {
        const child = logger.child?.(fields)
        if (child) return containLogger(child)
      } catch {
        // The fields are added below.
      }
      return addFields(containLogger(logger), fields)
    },
  }
}

/** Returns a logger that adds fields to each line, by `child` if the logger has it. */
export const withFields = (logger: Logger, fields: object): Logger =>
  logger.child?.(fields) ?? addFields(logger, fields)

const addFields = (logger: Logger, fields: object): Logger => ({
  debug: (details, message) => logger.debug?.({ ...fields, ...details }, message),
  info: (details, message) => logger.info?.({ ...fields, ...details }, message),
  warn: (details, message) => logger.warn({ ...fields, ...details }, message),
  error: (details, message) => logger.error({ ...fields, ...details }, message),
})

/** A logger whose methods take the message first, such as those of winston and NestJS, and `console`. */
export interface MessageFirstLogger {
  debug?(message: string, details: object): unknown
  info?(message: string, details: object): unknown
  /** Used if there is no `info`. */
  log?(message: string, details: object): unknown
  warn(message: string, details: object): unknown
  error(message: string, details: object): unknown
  child?(fields: object): MessageFirstLogger
}

/** Adapts a logger whose methods take the message first. Errors become plain objects, which such loggers print. */
export function messageFirst(logger: MessageFirstLogger): Logger {
  const { child } = logger
  const info = logger.info ? 'info' : 'log'
  const call =
    (level: Level | 'log') =>
    (details: object, message: string): unknown =>
      logger[level]?.(message, withPlainError(details))
  return {
    ...{ debug: call('debug'), info: call(info), warn: call('warn'), error: call('error') },
    ...(child && { child: (fields: object) => messageFirst(child.call(logger, fields)) }),
  }
}

const withPlainError = (details: object): object =>
  'err' in details ? { ...details, err: toPlain(details.err) } : details

const toPlain = (error: unknown): unknown =>
  error instanceof Error
    ? {
        ...{ name: error.name, message: error.message, stack: error.stack },
        ...('code' in error && { code: error.code }),
        ...(error.cause !== undefined && { cause: toPlain(error.cause) }),
      }
    : error

/** @param fields describe the request or the call that has failed */
export type ReportError = (error: LlmError, fields?: object) => void

/**
 * Creates a function that logs the errors that no client can correct. It logs every server failure once, even if
 * several parts report it, and each mistake in the setup once. The line contains the fields of the first report.
 */
export function createErrorReporter(logger: Logger | undefined): ReportError {
  const reportedSetupErrors = new Set<string>()
  const reported = new WeakSet<object>()
  return (error, fields = {}) => {
    const { code, message, details } = error
    // Each part that gets a failure that is no `LlmError` wraps it in another one.
    const failure = code === 'internal' && error.cause instanceof Error ? error.cause : error
    if (reported.has(failure)) return
    reported.add(failure)
    const line = logger && withFields(logger, fields)
    if (code === 'internal' || code === 'upstream' || code === 'unavailable')
      line?.error({ err: error }, message)
    else if (details.setup && !reportedSetupErrors.has(message)) {
      reportedSetupErrors.add(message)
      line?.warn({ err: error }, message)
    }
  }
}
