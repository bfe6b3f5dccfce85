/** Options of commands that print one page of a long list. */
import { type Command, InvalidArgumentError } from 'commander'

export interface PageOptions {
  readonly limit: number
  /** The last entry of the previous page. */
  readonly after?: string
}

export const withPageOptions = (command: Command, entry: string): Command =>
  command
    .option('--limit <count>', `${entry}s to print, from 1 to 1000`, pageSize, 1_000)
    .option(`--after <${entry}>`, `print the page after this ${entry}`)

function pageSize(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= 1_000) return Number(text)
  throw new InvalidArgumentError('Expected a whole number from 1 to 1000.')
}
