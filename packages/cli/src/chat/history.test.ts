import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { History } from './history.ts'

let file: string

beforeEach(() => {
  file = join(emptyFolder(), '.ollama', 'history')
})

test('stores entries in a private file, the oldest first', () => {
  const history = new History(file)

  for (const entry of ['one', 'two', 'two', '', 'three']) history.add(entry)

  expect(new History(file).entries).toEqual(['one', 'two', 'three'])
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo\nthree\n')
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
})

test('keeps the last hundred entries, and no entry of more than 10,000 characters', () => {
  const history = new History(file)

  for (let number = 1; number <= 102; number++) history.add(`${number}`)
  history.add('x'.repeat(10_001))

  expect(history.entries).toHaveLength(100)
  expect([history.entries[0], history.entries.at(-1)]).toEqual(['3', '102'])
})

test('keeps the entries of another conversation, and makes its file private', () => {
  mkdirSync(join(file, '..'))
  writeFileSync(file, 'other\n', { mode: 0o644 })

  new History(file).add('mine')

  expect(readFileSync(file, 'utf8')).toBe('other\nmine\n')
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
})

test('a file that cannot be written is no error', () => {
  mkdirSync(file, { recursive: true })

  new History(file).add('lost')

  expect(new History(file).entries).toEqual([])
})
