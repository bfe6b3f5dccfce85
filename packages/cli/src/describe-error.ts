/** Describes the error that ends a command, in one line. */
import { withFlags } from './flags.ts'

export function describeError(error: Error): string {
  const reason = connectionFailure(error)
  return reason === undefined
    ? withFlags(error.message)
    : `--data: The database cannot be reached (${reason}). Check the URL, and whether it runs.`
}

/** The code of a failed connection to a database. Failed requests to servers have a text of their own. */
function connectionFailure(error: Error): string | undefined {
  // A host name with several addresses fails with all their errors together.
  const { code, syscall } = error as NodeJS.ErrnoException
  const isConnection = error instanceof AggregateError || syscall === 'connect' || syscall === 'getaddrinfo'
  return isConnection ? code : undefined
}
