/** Several processes share a rate limit through a real database, with the real clock. */
import { describe, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { expectIdealBucket, limit } from './four-processes.ts'

describe.each(databases())('one rate limit of four processes in $name', ({ name, fresh }) => {
  test(`four processes with 4,000 requests get what one bucket of ${limit} per minute holds, within 1 %`, async () => {
    const url = await fresh()
    const database = await openDatabase(url)
    onTestFinished(() => database.close())

    await expectIdealBucket(name, url, async () => {
      const [row] = await database.query<{ now: number }>(`SELECT ${database.clock} AS now`)
      return row?.now ?? 0
    })
  }, 90_000)
})
