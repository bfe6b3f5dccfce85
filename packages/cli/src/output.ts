/** Output of the commands on stdout and stderr. */
import { withFlags } from './flags.ts'

export const print = (text: string): boolean => process.stdout.write(text)

export const asJson = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

/**
 * Logs a message on stderr. Adds the error, or its cause, because responses omit the cause. The line of an event without an error,
 * such as `replica ejected`, has its details.
 *
 * @param message may be the message of the error with flags in place of options
 */
export function logToStderr(details: object, message: string): void {
  const { err } = details as { readonly err?: Error }
  if (!err) {
    logFieldsToStderr(details, message)
    return
  }
  const reason = err.cause instanceof Error ? err.cause : err
  const isSame = reason.message === message || withFlags(reason.message) === message
  const [cause] = isSame ? [] : reason.message.split('\n')
  process.stderr.write(`modelmount: ${message}${cause ? ` (${cause})` : ''}\n`)
}

/** Logs a message with its details as `name=value` on stderr. */
export function logFieldsToStderr(details: object, message: string): void {
  const fields = Object.entries(details).map(([name, value]) => ` ${name}=${toLogValue(value)}`)
  process.stderr.write(`modelmount: ${message}${fields.join('')}\n`)
}

/** JSON, without quotes where they are not needed. */
function toLogValue(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[\w.:/@-]+$/.test(value)
  return isPlain ? value : JSON.stringify(value)
}

/** Prints how to get the next page on stderr, unless this page is the last one. */
export function noteNextPage(length: number, limit: number, last: string | undefined): void {
  if (last !== undefined && length >= limit)
    process.stderr.write(`There may be more. The next page: --after ${quote(last)}\n`)
}

const quote = (text: string): string =>
  /^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
