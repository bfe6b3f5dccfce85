import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findPackageFile } from './package-file.ts'

test('finds an entry point of an installed package', () => {
  const file = findPackageFile('@modelmount/core/sqlite-worker')

  expect(file).toMatch(/core[\\/]dist[\\/]storage[\\/]sqlite[\\/]worker\.js$/)
  expect(existsSync(file as string)).toBe(true)
})

test('returns undefined for a package that is not installed', () => {
  expect(findPackageFile('@modelmount/none/file')).toBeUndefined()
})
