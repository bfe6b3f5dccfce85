import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { budgetOf } from '../../../../../../test/support/budgets.ts'
import { Watchdog } from '../supervisor/watchdog.ts'
import { stepsBesideDecoding } from './steps-beside-decoding.ts'
import { WorkerPool } from './workers/worker-pool.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A process with a job that runs without end, as its watchdog sees it. */
function watchedProcess() {
  let isDecoding = false
  const progress = { steps: 0 }
  const beside = stepsBesideDecoding(progress, () => isDecoding)
  const pool = new WorkerPool<string, string>(
    () => ({ run: () => new Promise(() => {}), restart: () => {} }),
    {
      onProgress: () => {
        beside.steps++
      },
    },
  )
  const stuck: string[] = []
  const watchdog: Watchdog = new Watchdog(
    () => watchdog.onPong(beside.steps),
    (reason) => stuck.push(reason),
  )
  watchdog.start(15)
  void pool.run('slow', budgetOf())
  return {
    progress,
    stuck,
    setDecoding: (value: boolean) => {
      isDecoding = value
    },
  }
}

test('a slow job counts as progress while nothing is decoded', async () => {
  const { stuck } = watchedProcess()

  await vi.advanceTimersByTimeAsync(60_000)

  expect(stuck).toEqual([])
})

test('a decoder that hangs is found while a slow job runs', async () => {
  const { stuck, setDecoding } = watchedProcess()
  await vi.advanceTimersByTimeAsync(5_000)

  setDecoding(true)
  await vi.advanceTimersByTimeAsync(20_000)

  expect(stuck).toContain('it made no progress')
})

test('a decoder that works is not stuck while a slow job runs', async () => {
  const { progress, stuck, setDecoding } = watchedProcess()
  setDecoding(true)

  for (let second = 0; second < 60; second++) {
    progress.steps++
    await vi.advanceTimersByTimeAsync(1_000)
  }

  expect(stuck).toEqual([])
})
