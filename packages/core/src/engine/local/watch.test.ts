import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Watch } from './watch.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function watched() {
  const pings: number[] = []
  const stuck: string[] = []
  const watch = new Watch(
    () => pings.push(Date.now()),
    (reason) => stuck.push(reason),
  )
  return { watch, pings, stuck }
}

test('a process that answers and works is left alone', () => {
  const { watch, stuck } = watched()
  watch.start(60)

  for (let second = 0; second < 300; second++) {
    vi.advanceTimersByTime(1_000)
    watch.onPong(second)
  }

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
  const { watch, stuck } = watched()
  watch.start(60)

  for (let second = 0; second < 62; second++) {
    vi.advanceTimersByTime(1_000)
    watch.onPong(7)
  }

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
  const { watch, stuck } = watched()
  watch.start(60)
  watch.rest()

  for (let second = 0; second < 300; second++) {
    vi.advanceTimersByTime(1_000)
    watch.onPong(7)
  }
  expect(stuck).toEqual([])
  vi.advanceTimersByTime(6_000)

  expect(stuck).toEqual(['it stopped answering'])
})

test('what it was not asked to do while it rested does not count against it', () => {
  const { watch, stuck } = watched()
  watch.start(60)
  watch.rest()
  for (let second = 0; second < 300; second++) {
    vi.advanceTimersByTime(1_000)
    watch.onPong(7)
  }

  watch.start(60)
  for (let second = 0; second < 59; second++) {
    vi.advanceTimersByTime(1_000)
    watch.onPong(7)
  }

  expect(stuck).toEqual([])
})

test('once it is left nothing is sent', () => {
  const { watch, pings } = watched()
  watch.start(60)
  watch.stop()

  vi.advanceTimersByTime(60_000)

  expect(pings).toEqual([])
})
