/** The table of metrics in `docs/operations/metrics.md`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type MetricDefinition, metrics } from '@modelmount/core/metrics'
import { root } from '../packaging/npm.ts'

export const pageFile = join(root, 'docs/operations/metrics.md')

/** Returns the page with a table of the metrics that exist. The text around the table stays as it is. */
export function renderPage(): string {
  const page = readFileSync(pageFile, 'utf8')
  const [table] = /^\| metric \|.*\n(?:\|.*\n)+/m.exec(page) ?? []
  if (table === undefined) throw new Error('docs/operations/metrics.md has no table of metrics')
  // A function, because a text could contain `$`.
  return page.replace(table, () => renderTable())
}

const renderTable = (): string =>
  [
    '| metric | type | labels | meaning |',
    '| --- | --- | --- | --- |',
    ...Object.entries<MetricDefinition>(metrics).map(
      ([name, { type, labels, help }]) =>
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help.replace(/\.$/, '')} |`,
    ),
    '',
  ].join('\n')
