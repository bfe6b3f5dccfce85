import { expect, test, vi } from 'vitest'
import { calibrate, threadCandidates } from './calibrate.ts'
import type { Decoder, Piece } from './scheduler.ts'

/** @param msOf what a token takes with so many threads; the clock is scripted, too */
function decoderOf(msOf: (threads: number) => number) {
  const clock = vi.spyOn(performance, 'now')
  let now = 0
  clock.mockImplementation(() => now)
  const seen = { tried: [] as number[], positions: [] as number[], held: 0, samplers: 0 }
  let threads = 0
  const decoder: Decoder = {
    sequences: 1,
    chunkSize: 64,
    isWhole: () => true,
    save: async () => 0,
    loadsAlike: () => true,
    load: async () => 0,
    async decode([piece]: readonly Piece[]) {
      now += msOf(threads)
      seen.tried.push(threads)
      expect(piece?.position).toBe(seen.held++)
      return [undefined]
    },
    forget() {
      seen.held = 0
      return true
    },
    setThreads: (answers) => {
      threads = answers
    },
    sampler: () => {
      seen.samplers++
      return { dispose: () => seen.samplers-- }
    },
    isEnd: () => false,
  }
  return { decoder, seen, now: () => now }
}

test('the number of threads with the fastest tokens is taken, and nothing of it stays', async () => {
  const { decoder, seen } = decoderOf((threads) => [0, 20, 12, 0, 9, 0, 0, 0, 15][threads] ?? 99)

  expect(await calibrate(decoder, threadCandidates(8))).toEqual({ threads: 4, stepMs: 9 * 64 })
  expect(new Set(seen.tried)).toEqual(new Set([8, 4, 2, 1]))
  expect([seen.held, seen.samplers]).toEqual([0, 0])
})

test('threads that are fast only now and then are not taken', async () => {
  let time = 0
  const { decoder } = decoderOf((threads) => (threads === 1 ? 20 : ++time % 2 ? 14 : 36))

  expect((await calibrate(decoder, [2, 1])).threads).toBe(1)
})

test('a slow first token does not count', async () => {
  let time = 0
  const { decoder } = decoderOf(() => (time++ === 0 ? 900 : 10))

  expect(await calibrate(decoder, [1])).toEqual({ threads: 1, stepMs: 640 })
})

test('it ends in time, also with a model that takes long', async () => {
  const slow = decoderOf(() => 150)
  await calibrate(slow.decoder, threadCandidates(16))
  expect(slow.now()).toBeLessThan(2_500)

  const slower = decoderOf((threads) => (threads === 8 ? 5_000 : 7_000))
  expect(await calibrate(slower.decoder, threadCandidates(8))).toEqual({ threads: 8, stepMs: 5_000 * 64 })
  expect(new Set(slower.seen.tried)).toEqual(new Set([8]))
})

test('few numbers of threads are tried, from the most to one', () => {
  expect(threadCandidates(1)).toEqual([1])
  expect(threadCandidates(2)).toEqual([2, 1])
  expect(threadCandidates(7)).toEqual([7, 4, 2, 1])
})
