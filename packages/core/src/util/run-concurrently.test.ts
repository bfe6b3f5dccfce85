import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runConcurrently } from './run-concurrently.ts'

const never = new AbortController().signal

test('runs all jobs with limited concurrency', async () => {
  let [running, most] = [0, 0]
  const done: string[] = []

  await runConcurrently(['a', 'b', 'c', 'd', 'e'], 2, never, async (item, index) => {
    most = Math.max(most, ++running)
    await setImmediate()
    running--
    done[index] = item
  })

  expect([most, done]).toEqual([2, ['a', 'b', 'c', 'd', 'e']])
})

test('the first failure aborts the other jobs and is thrown after they have ended', async () => {
  const ended: number[] = []
  const failing = runConcurrently([0, 1, 2, 3], 2, never, async (item, _index, signal) => {
    if (item === 1) throw new Error('no')
    while (!signal.aborted) await setImmediate()
    ended.push(item)
  })

  await expect(failing).rejects.toThrow('no')
  expect(ended).toEqual([0])
})

test('starts no further jobs after an abort', async () => {
  const leaving = new AbortController()
  const begun: number[] = []

  await runConcurrently([0, 1, 2], 1, leaving.signal, async (item) => {
    begun.push(item)
    leaving.abort()
  })

  expect(begun).toEqual([0])
})
