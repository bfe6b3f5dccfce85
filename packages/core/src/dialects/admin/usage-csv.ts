/** Renders usage as CSV (RFC 4180), safe for spreadsheets. */
import type { UsageRow } from '../../accounts/usage/report.ts'

const columns = [
  'group',
  'name',
  'calls',
  'unpriced_calls',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'undelivered_tokens',
  'usd',
  'batch_calls',
  'batch_usd',
] as const

const render = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `${row.map(toField).join(',')}\r\n`).join('')

/** Begins a text that a spreadsheet would compute, such as `=1+1`, with an apostrophe. */
function toField(value: string | number): string {
  const text = String(value).replace(/^[=+\-@\t\r]/, "'$&")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Yields the head, and then the rows of each page. */
export async function* toCsv(pages: AsyncIterable<readonly UsageRow[]>): AsyncGenerator<string> {
  yield render([columns])
  for await (const rows of pages)
    yield render(
      rows.map(({ group, name = '', calls, unpricedCalls, tokens, undeliveredTokens, nanoUsd, batch }) => [
        ...[group, name, calls, unpricedCalls],
        ...[tokens.input, tokens.cachedInput, tokens.cacheWrite, tokens.output, undeliveredTokens],
        ...[toDecimal(nanoUsd), batch.calls, toDecimal(batch.nanoUsd)],
      ]),
    )
}

/** Returns dollars without rounding. */
const toDecimal = (nanoUsd: bigint): string =>
  `${nanoUsd / 1_000_000_000n}.${`${nanoUsd % 1_000_000_000n}`.padStart(9, '0')}`
