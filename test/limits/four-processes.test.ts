/** Several processes share a rate limit through a real database, with the real clock. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'

const limit = 600
const requests = 4_000
const processes = 4
const file = fileURLToPath(new URL('./asker.mjs', import.meta.url))

describe.each(databases())('one rate limit of four processes in $name', ({ name, fresh }) => {
  test(`four processes with 4,000 requests get what one bucket of ${limit} per minute holds, within 1 %`, async () => {
    const url = await fresh()
    const database = await openDatabase(url)
    onTestFinished(() => database.close())
    const clock = async () => {
      const [row] = await database.query<{ now: number }>(`SELECT ${database.clock} AS now`)
      return row?.now ?? 0
    }
    const children = Array.from({ length: processes }, () =>
      fork(file, [url, `${limit}`, '4', `${requests / processes}`], { execArgv: [] }),
    )
    onTestFinished(() => void children.map((child) => child.kill()))
    await Promise.all(children.map((child) => once(child, 'message')))

    const start = await clock()
    const answers = children.map((child) => once(child, 'message'))
    for (const child of children) child.send('start')
    const results = (await Promise.all(answers)).map(
      ([result]) => result as { asked: number; admitted: number },
    )
    const elapsedMs = (await clock()) - start

    const sum = (of: 'asked' | 'admitted') => results.reduce((total, result) => total + result[of], 0)
    const ideal = limit + (elapsedMs * limit) / 60_000
    process.stdout.write(
      `${name}: ${sum('admitted')} of ${sum('asked')} admitted in ${elapsedMs} ms; ideal ${ideal.toFixed(1)}\n`,
    )
    expect(sum('asked')).toBe(requests)
    expect(sum('admitted') / ideal).toBeGreaterThan(0.99)
    expect(sum('admitted') / ideal).toBeLessThanOrEqual(1)
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  }, 90_000)
})
