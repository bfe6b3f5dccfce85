/** What the commands say: to whoever reads, and of failures. */

export const print = (text: string): boolean => process.stdout.write(text)

/** For the logger. With the cause, if it says more: whoever reads this may know everything. */
export function complain(details: object, message: string): void {
  const { err } = details as { readonly err?: Error }
  const [cause] = err?.cause instanceof Error ? err.cause.message.split('\n') : []
  process.stderr.write(`modelmount: ${message}${cause ? ` (${cause})` : ''}\n`)
}
