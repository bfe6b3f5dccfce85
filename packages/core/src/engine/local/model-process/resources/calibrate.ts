/**
 * Measures the best thread count for decoding, the chunk size and the longest step. Runs at load, within a
 * time limit.
 */
import type { Token } from 'node-llama-cpp'
import type { Decoder } from '../decoding/decoder.ts'
import type { SamplingParams } from '../decoding/sampling.ts'

/**
 * Maximum number of timed decode steps per thread count. `choice` applies if there are several thread counts,
 * `none` if there is only one.
 */
const timingCounts = { choice: 8, none: 2 }
const calibrationLimitMs = 2_000
/** How long a prefill chunk may delay other sequences. */
const maxChunkMs = 200
/** Assumed duration of the longest step, in ms, if nothing was measured. */
export const defaultStepMs = 6_000

/** Smallest chunk size. llama.cpp's fast CPU kernels take this many rows, and fewer are never faster. */
export const minChunkSize = 64

const anyToken = 0 as Token
const greedyParams: SamplingParams = { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0, bias: [] }

export interface Calibration {
  /**
   * Thread count for decode steps. Memory bandwidth mostly limits these steps, so extra threads only wait for
   * each other.
   */
  readonly threads: number
  readonly chunkSize: number
  /** Estimate of the longest step, in ms: a chunk whose tokens each take as long as a decode step. */
  readonly stepMs: number
}

/** @param candidates thread counts. The first is always measured, the others while there is time. */
export async function calibrate(decoder: Decoder, candidates: readonly number[]): Promise<Calibration> {
  const startedAt = performance.now()
  const timings: { readonly threads: number; readonly ms: number }[] = []
  for (const [index, threads] of candidates.entries()) {
    if (index > 0 && performance.now() - startedAt > calibrationLimitMs) break
    decoder.setThreads(threads, threads)
    const until = startedAt + (calibrationLimitMs * (index + 1)) / candidates.length
    const maxTimings = candidates.length > 1 ? timingCounts.choice : timingCounts.none
    timings.push({ threads, ms: upperQuartile(await measureSteps(decoder, maxTimings, until)) })
  }
  const best = timings.reduce((best, one) => (one.ms < best.ms ? one : best))
  const chunkSize = await findLargestFastChunk(decoder, listHalvings(decoder.chunkSize, minChunkSize))
  return { threads: best.threads, chunkSize, stepMs: best.ms * chunkSize }
}

/**
 * Finds the largest chunk size that is fast enough. Does not measure the smallest size, which is the
 * fallback.
 */
async function findLargestFastChunk(decoder: Decoder, sizes: readonly number[]): Promise<number> {
  const until = performance.now() + calibrationLimitMs
  for (const size of sizes.slice(0, -1)) {
    // The first run allocates buffers and loads kernels.
    for (let time = 0; time < 2 && performance.now() < until; time++)
      if ((await measureChunk(decoder, size)) <= maxChunkMs) return size
  }
  return sizes.at(-1) as number
}

async function measureChunk(decoder: Decoder, size: number): Promise<number> {
  const startedAt = performance.now()
  const tokens = Array<Token>(size).fill(anyToken)
  await decoder.decode([{ sequence: 0, position: 0, tokens, isDeterministic: false }])
  const ms = performance.now() - startedAt
  decoder.truncate(0, 0)
  return ms
}

export const listThreadCandidates = (max: number): readonly number[] => listHalvings(max, 1)

/** Halves `max` repeatedly, down to `min`. Values in between make little difference. */
const listHalvings = (max: number, min: number): readonly number[] =>
  max > min ? [max, ...listHalvings(Math.max(Math.ceil(max / 2), min), min)] : [max]

async function measureSteps(decoder: Decoder, maxTimings: number, until: number): Promise<readonly number[]> {
  const sampler = decoder.createSampler(greedyParams, [])
  const times: number[] = []
  try {
    // The first step reads weights from the disk and allocates buffers.
    for (
      let position = 0;
      position <= maxTimings && (position === 0 || performance.now() < until);
      position++
    ) {
      const startedAt = performance.now()
      await decoder.decode([{ sequence: 0, position, tokens: [anyToken], sampler, isDeterministic: false }])
      times.push(performance.now() - startedAt)
    }
  } finally {
    sampler.dispose()
    decoder.truncate(0, 0)
  }
  return times.length > 1 ? times.slice(1) : times
}

/** Not the median: a thread count has to be fast most of the time. */
const upperQuartile = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[(values.length * 3) >> 2] ?? 0
