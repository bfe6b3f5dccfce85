/** Renders usage as CSV (RFC 4180), safe for spreadsheets. */
import { stringify } from 'csv-stringify/sync'
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

// Otherwise a spreadsheet computes a name that begins with `=`.
const render = (rows: readonly (readonly (string | number)[])[]): string =>
  stringify(rows as never, { escape_formulas: true, record_delimiter: 'windows' })

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
