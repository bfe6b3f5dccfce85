import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withStallWatch } from './retry.ts'

const pace = { stallMs: 30_000, pauseMs: 1_000, maxFailures: 6 }

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

/** Rejects with the signal's reason. */
const endless = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a slow transfer continues, a stalled one ends', async () => {
  let moved = 0
  let problem: unknown
  const watched = withStallWatch(endless, () => moved, pace, new AbortController().signal).catch((error) => {
    problem = error
  })

  for (let piece = 0; piece < 20; piece++) {
    moved++
    await vi.advanceTimersByTimeAsync(29_000)
  }
  expect(problem).toBeUndefined()

  await vi.advanceTimersByTimeAsync(60_000)
  expect(problem).toMatchObject({ code: 'upstream', message: 'part stalled' })
  await watched
})

test('an abort is not reported as a stall', async () => {
  const controller = new AbortController()
  const watched = withStallWatch(endless, () => 0, pace, controller.signal)

  controller.abort(new Error('left'))

  await expect(watched).rejects.toThrow('left')
})
