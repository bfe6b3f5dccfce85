/** Output of the commands on stdout and stderr. */

export const print = (text: string): boolean => process.stdout.write(text)

/** Logs a message on stderr. Adds the cause of an error, because responses omit the cause. */
export function logToStderr(details: object, message: string): void {
  const { err } = details as { readonly err?: Error }
  const [cause] = err?.cause instanceof Error ? err.cause.message.split('\n') : []
  process.stderr.write(`modelmount: ${message}${cause ? ` (${cause})` : ''}\n`)
}
