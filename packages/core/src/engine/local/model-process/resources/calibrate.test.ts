import { expect, test, vi } from 'vitest'
import type { BatchEntry, Decoder } from '../decoding/decoder.ts'
import { calibrate, listThreadCandidates } from './calibrate.ts'

/** @param msOf scripted duration of a step in ms, by thread count and number of tokens */
function decoderOf(msOf: (threads: number, tokens: number) => number, chunkSize = 64) {
  const clock = vi.spyOn(performance, 'now')
  let now = 0
  clock.mockImplementation(() => now)
  const seen = { tried: [] as number[], positions: [] as number[], held: 0, samplers: 0 }
  let threads = 0
  const decoder: Decoder = {
    canTruncate: true,
    sequenceCount: 1,
    chunkSize,
    chunksAtOnce: 1,
    isComplete: () => true,
    save: async () => 0,
    windowSize: Number.POSITIVE_INFINITY,
    minCopyLength: Number.POSITIVE_INFINITY,
    copy: async () => 0,
    load: async () => 0,
    async decode([piece]: readonly BatchEntry[]) {
      const { position, tokens } = piece as BatchEntry
      now += msOf(threads, tokens.length)
      seen.tried.push(threads)
      expect(position).toBe(seen.held)
      seen.held += tokens.length
      return [[]]
    },
    truncate() {
      seen.held = 0
      return true
    },
    setThreads: (answers) => {
      threads = answers
    },
    createSampler: () => {
      seen.samplers++
      return { dispose: () => seen.samplers-- }
    },
    isEog: () => false,
  }
  return { decoder, seen, now: () => now }
}

test('takes the thread count with the fastest tokens, and leaves nothing in the sequence', async () => {
  const { decoder, seen } = decoderOf((threads) => [0, 20, 12, 0, 9, 0, 0, 0, 15][threads] ?? 99)

  expect(await calibrate(decoder, listThreadCandidates(8))).toEqual({
    threads: 4,
    chunkSize: 64,
    stepMs: 9 * 64,
  })
  expect(new Set(seen.tried)).toEqual(new Set([8, 4, 2, 1]))
  expect([seen.held, seen.samplers]).toEqual([0, 0])
})

test('does not take a thread count that is fast only now and then', async () => {
  let time = 0
  const { decoder } = decoderOf((threads) => (threads === 1 ? 20 : ++time % 2 ? 14 : 36))

  expect((await calibrate(decoder, [2, 1])).threads).toBe(1)
})

test('ignores a slow first token', async () => {
  let time = 0
  const { decoder } = decoderOf(() => (time++ === 0 ? 900 : 10))

  expect(await calibrate(decoder, [1])).toEqual({ threads: 1, chunkSize: 64, stepMs: 640 })
})

test('ends in time, also with a slow model', async () => {
  const slow = decoderOf(() => 150)
  await calibrate(slow.decoder, listThreadCandidates(16))
  expect(slow.now()).toBeLessThan(2_500)

  const slower = decoderOf((threads) => (threads === 8 ? 5_000 : 7_000))
  expect(await calibrate(slower.decoder, listThreadCandidates(8))).toEqual({
    threads: 8,
    chunkSize: 64,
    stepMs: 5_000 * 64,
  })
  expect(new Set(slower.seen.tried)).toEqual(new Set([8]))
})

test.each([
  ['the largest if it is fast', 0.3, 512],
  ['half of the largest if that is slow', 0.5, 256],
  ['a quarter if half is slow', 1, 128],
  ['never less than CPU kernels need', 20, 64],
])('with a graphics card, the chunk size is %s', async (_what, msPerToken, chunkSize) => {
  const { decoder, seen } = decoderOf((_, tokens) => tokens * msPerToken, 512)

  expect(await calibrate(decoder, [1])).toEqual({ threads: 1, chunkSize, stepMs: msPerToken * chunkSize })
  expect(seen.held).toBe(0)
})

test('a slow first chunk does not count', async () => {
  let time = 0
  const { decoder } = decoderOf((_, tokens) => (tokens === 512 && time++ === 0 ? 900 : 100), 512)

  expect((await calibrate(decoder, [1])).chunkSize).toBe(512)
})

test('measures no more chunks than there is time for', async () => {
  const slow = decoderOf((_, tokens) => (tokens > 1 ? 3_000 : 1), 512)

  expect((await calibrate(slow.decoder, [1])).chunkSize).toBe(64)
  expect(slow.now()).toBeLessThan(3_500)
})

test('tries few thread counts, from the most to one', () => {
  expect(listThreadCandidates(1)).toEqual([1])
  expect(listThreadCandidates(2)).toEqual([2, 1])
  expect(listThreadCandidates(7)).toEqual([7, 4, 2, 1])
})
