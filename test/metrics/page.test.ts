/** The page about metrics lists those that exist. `npx vitest run --project test test/metrics -u` writes its table. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { metrics } from '@modelmount/core/metrics'
import { expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { codeBlocks } from '../support/pages.ts'
import { hasPrometheus, promtool } from '../support/prometheus.ts'
import { pageFile, renderPage } from './page.ts'

test('the table of the page has every metric, with its type, labels and meaning', async () => {
  await expect(renderPage()).toMatchFileSnapshot(pageFile)
})

test('the page names the bounds of the buckets', () => {
  const page = readFileSync(pageFile, 'utf8')
  const bounds = new Set(
    Object.values(metrics).flatMap((metric) => ('buckets' in metric ? [metric.buckets] : [])),
  )

  for (const buckets of bounds) expect(page).toContain(buckets.join(', '))
})

test.runIf(hasPrometheus)('promtool accepts the scrape configuration of the page', () => {
  const [code = ''] = codeBlocks('docs/operations/metrics.md').flatMap(({ language, code }) =>
    language === 'yaml' ? [code] : [],
  )

  const file = join(emptyFolder(), 'prometheus.yml')
  writeFileSync(file, code)

  expect(promtool(['check', 'config', '--syntax-only', file]).output).toContain('SUCCESS')
})
