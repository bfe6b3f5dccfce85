import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import { connect } from './connection.ts'

const folder = emptyFolder()

test.each([true, false])('a missing file is not created, isReader: %s', async (isReader) => {
  const path = join(folder, 'missing.db')

  await expect(connect(path, isReader)).rejects.toThrow(/unable to open/)

  expect(existsSync(path)).toBe(false)
})

test('a path may have the special characters of URLs', async () => {
  const path = join(folder, '50% of #1?mode=ro.db')
  writeFileSync(path, '')

  const connection = await connect(path, false)

  connection.run('CREATE TABLE t (number INTEGER)')
  connection.run('INSERT INTO t VALUES (?)', [1])
  expect(connection.run('SELECT number FROM t')).toEqual([{ number: 1 }])
  connection.close()
})

test('the file is checked while it is open and its -wal file is not', async () => {
  const path = join(folder, 'checked.db')
  writeFileSync(path, '')
  let hadLog: boolean | undefined

  const connection = await connect(path, false, () => {
    hadLog = existsSync(`${path}-wal`)
  })

  expect(hadLog).toBe(false)
  expect(existsSync(`${path}-wal`)).toBe(true)
  connection.close()
})
