/** Four processes that share a rate limit, with the real clock. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'

export const limit = 600
const requests = 4_000
const processes = 4
const file = fileURLToPath(new URL('./asker.mjs', import.meta.url))

/**
 * Sends 4,000 requests in 20 s. Expects that as many are admitted as one bucket of 600 per minute holds, within 1 %.
 *
 * @param location a database, or `redis:` and the path of a socket
 * @param clock returns the time of the store, in ms
 */
export async function expectIdealBucket(
  name: string,
  location: string,
  clock: () => Promise<number>,
): Promise<void> {
  const children = Array.from({ length: processes }, () =>
    fork(file, [location, `${limit}`, '4', `${requests / processes}`], { execArgv: [] }),
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
}
