import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { NoteWriter } from './note-writer.ts'

/** The ids of each write, and the functions that end the writes. */
const written: (readonly string[])[] = []
let ends: ((failure?: Error) => void)[] = []

const openWriter = (): NoteWriter =>
  new NoteWriter(
    (ids) =>
      new Promise((resolve, reject) => {
        written.push(ids())
        ends.push((failure) => (failure ? reject(failure) : resolve()))
      }),
  )

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
  written.length = 0
  ends = []
})
/** Passes time, and lets promises resolve. */
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

test('the first note is written at once, and all notes of the next 100 ms are written together', async () => {
  const notes = openWriter()
  void notes.write('a')
  await pass(0)
  expect(written).toEqual([['a']])
  ends[0]?.()

  for (const id of ['a', 'b', 'c', 'b']) void notes.write(id)
  await pass(99)
  expect(written).toHaveLength(1)
  await pass(1)

  expect(written).toEqual([['a'], ['a', 'b', 'c']])
})

test('a reader that waits for its note ends the pause', async () => {
  const notes = openWriter()
  void notes.write('a')
  await pass(0)
  const second = notes.write('a')
  await pass(10)
  notes.hurry()
  await pass(0)
  ends[1]?.()
  await second

  expect(written).toEqual([['a'], ['a']])
  expect(vi.getTimerCount()).toBe(0)
})

test('a note that becomes due during a write is in the next one', async () => {
  const notes = openWriter()
  const first = notes.write('a')
  await pass(0)
  const second = notes.write('b')
  ends[0]?.()
  await first
  await pass(100)
  ends[1]?.()
  await second

  expect(written).toEqual([['a'], ['b']])
})

test('a write that fails rejects for its notes, and later notes are written', async () => {
  const notes = openWriter()
  const first = notes.write('a')
  await pass(0)
  ends[0]?.(new Error('locked'))
  await expect(first).rejects.toThrow('locked')
  const second = notes.write('a')
  await pass(100)
  ends[1]?.()

  await second
  expect(written).toHaveLength(2)
})
