/** What a check of `modelmount doctor` returns. */

export interface Finding {
  /** What was checked, such as `memory`. */
  readonly check: string
  readonly status: FindingStatus
  /** A sentence. */
  readonly message: string
  /** The command that mends it, or a sentence where no command does. */
  readonly fix?: string
}

/** With a `problem`, something does not work. With a `warning`, it works worse than it could. */
export type FindingStatus = 'ok' | 'warning' | 'problem'

type Make = (message: string, fix?: string) => Finding

/** Returns the functions that make findings of one check. */
export function findingsOf(check: string): Readonly<Record<FindingStatus, Make>> {
  const make =
    (status: FindingStatus): Make =>
    (message, fix) => ({ check, status, message, ...(fix !== undefined && { fix }) })
  return { ok: make('ok'), warning: make('warning'), problem: make('problem') }
}

/** Quotes a path for a shell, if it needs quotes. */
export const quoted = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
