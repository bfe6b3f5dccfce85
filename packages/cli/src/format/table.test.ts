import { expect, test } from 'vitest'
import { table } from './table.ts'

test('columns are as wide as their widest cell, without trailing spaces', () => {
  const rows = [
    ['NAME', 'ID'],
    ['clitiny:latest', '5d9167ae0343'],
    ['tiny', ''],
  ]

  expect(table(rows)).toBe('NAME              ID\nclitiny:latest    5d9167ae0343\ntiny\n')
  expect(table([['a', 'b']], '  ')).toBe('  a    b\n')
})
