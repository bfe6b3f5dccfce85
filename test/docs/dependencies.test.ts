/** `npx vitest run --project test test/docs/dependencies.test.ts -u` writes the tables of the page. */
import { expect, test } from 'vitest'
import { isPermissive, pageFile, renderPage, tables } from './dependency-table.ts'

test('the page has each dependency, with its purpose, size and licence', async () => {
  await expect(renderPage()).toMatchFileSnapshot(pageFile)
})

test('each dependency, and all that it needs, has a permissive licence', () => {
  const all = tables.flatMap(({ rows }) => rows.flatMap(({ dependency }) => [...dependency.closure.values()]))

  expect(all.length).toBeGreaterThan(300)
  const others = all.filter(({ licence }) => !isPermissive(licence))
  expect([...new Set(others.map(({ name, licence }) => `${name}: ${licence}`))]).toEqual([])
})

test('a licence counts only if one of its choices is permissive', () => {
  expect(['(MIT OR GPL-3.0)', 'MIT', '(MIT AND ISC)'].map(isPermissive)).toEqual([true, true, true])
  expect(['GPL-3.0', '(MIT AND GPL-3.0)', 'none'].map(isPermissive)).toEqual([false, false, false])
})
