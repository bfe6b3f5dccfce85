/** `npx vitest run --project test test/upstream/conformance/table.test.ts -u` writes the table of the page. */
import { expect, test } from 'vitest'
import { pageFile, renderPage } from './table.ts'

test('the table of the page counts the rows that each API cannot carry', async () => {
  await expect(renderPage()).toMatchFileSnapshot(pageFile)
})
