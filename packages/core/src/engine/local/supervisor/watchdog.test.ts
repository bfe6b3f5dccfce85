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
  /** @param stepsAt how far its work is in each second */
  const answersFor = (seconds: number, stepsAt: (second: number) => number): void => {
    for (let second = 0; second < seconds; second++) {
      vi.advanceTimersByTime(1_000)
      watch.onPong(stepsAt(second))
    }
  }
  return { watch, pings, stuck, answersFor }
}
/** It answers, and does nothing. */
const atRest = (): number => 7

test('a process that answers and works is left alone', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)

  answersFor(300, (second) => second)

  expect(stuck).toEqual([])
})

test('five pings without an answer mean that the event loop is stuck', () => {
  const { watch, stuck, pings } = watched()
  watch.start(60)

  vi.advanceTimersByTime(5_000)
  expect(stuck).toEqual([])
  vi.advanceTimersByTime(1_000)

  expect(stuck).toEqual(['it stopped answering'])
  expect(pings.length).toBeGreaterThanOrEqual(5)
})

test('calls that keep coming do not hide that it is stuck', () => {
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

test('an app that was stopped for an hour blames nobody', () => {
  const { watch, stuck } = watched()
  watch.start(60)
  vi.advanceTimersByTime(1_000)
  watch.onPong(1)

  vi.setSystemTime(Date.now() + 3_600_000)
  vi.advanceTimersByTime(1_000)

  expect(stuck).toEqual([])
})

test('at rest it has to answer, but not to work', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)
  watch.pause()

  answersFor(300, atRest)
  expect(stuck).toEqual([])
  vi.advanceTimersByTime(6_000)

  expect(stuck).toEqual(['it stopped answering'])
})

test('what it was not asked to do while it rested does not count against it', () => {
  const { watch, stuck, answersFor } = watched()
  watch.start(60)
  watch.pause()
  answersFor(300, atRest)

  watch.start(60)
  answersFor(59, atRest)

  expect(stuck).toEqual([])
})

test('once it is left nothing is sent', () => {
  const { watch, pings } = watched()
  watch.start(60)
  watch.stop()

  vi.advanceTimersByTime(60_000)

  expect(pings).toEqual([])
})
