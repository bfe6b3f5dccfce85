import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Watchdog } from './watchdog.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function watched() {
  const pings: number[] = []
  const stuck: string[] = []
  const watch = new Watchdog(
    () => pings.push(Date.now()),
    (reason) => stuck.push(reason),
  )
  /** @param stepsAt step count that the process reports in each second */
  const answersFor = (seconds: number, stepsAt: (second: number) => number): void => {
    for (let second = 0; second < seconds; second++) {
      vi.advanceTimersByTime(1_000)
      watch.onPong(stepsAt(second))
    }
  }
  return { watch, pings, stuck, answersFor }
}
/** Step count of a process that answers pings but makes no progress. */
const atRest = (): number => 7

test('a process that answers and makes progress is not stuck', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)

  answersFor(300, (second) => second)

  expect(stuck).toEqual([])
})

test('five unanswered pings mean that the event loop is stuck', () => {
  const { watch, stuck, pings } = watched()
  watch.start(60)

  vi.advanceTimersByTime(5_000)
  expect(stuck).toEqual([])
  vi.advanceTimersByTime(1_000)

  expect(stuck).toEqual(['it stopped answering'])
  expect(pings.length).toBeGreaterThanOrEqual(5)
})

test('further calls do not hide a stuck process', () => {
  const { watch, stuck } = watched()

  for (let second = 0; second < 10; second++) {
    watch.start(60)
    vi.advanceTimersByTime(1_000)
  }

  expect(stuck).toContain('it stopped answering')
})

test('answers without progress mean that the native code is stuck', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)

  answersFor(62, atRest)

  expect(stuck).toEqual(['it made no progress'])
})

test('the time while the app is suspended does not count against the process', () => {
  const { watch, stuck } = watched()
  watch.start(60)
  vi.advanceTimersByTime(1_000)
  watch.onPong(1)

  vi.setSystemTime(Date.now() + 3_600_000)
  vi.advanceTimersByTime(1_000)

  expect(stuck).toEqual([])
})

test('an idle process has to answer, but not to make progress', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)
  watch.pause()

  answersFor(300, atRest)
  expect(stuck).toEqual([])
  vi.advanceTimersByTime(6_000)

  expect(stuck).toEqual(['it stopped answering'])
})

test('idle time does not count as missing progress', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)
  watch.pause()
  answersFor(300, atRest)

  watch.start(60)
  answersFor(59, atRest)

  expect(stuck).toEqual([])
})

test('a stopped watchdog sends nothing', () => {
  const { watch, pings } = watched()
  watch.start(60)
  watch.stop()

  vi.advanceTimersByTime(60_000)

  expect(pings).toEqual([])
})
